/** Who may read a tenant, for readers that stay: event streams and WebSockets. */
import { whyNotRead } from "../../kernel/views.ts";
import { type Answer, refusalAnswer } from "../../protocol/answers/answer.ts";
import type { Caller, Service } from "../service.ts";
import { authenticate, type Credentials, isCaller } from "./authenticate.ts";

/** Whether a caller may read at first, and whether it still may later. */
export interface Readers {
  mayRead(caller: Caller): Promise<Answer | null>;
  isStillGood(shown: Credentials): boolean;
  /** The same for callers that may act but not read: a key that registers agents. */
  isStillKnown(shown: Credentials): boolean;
}

export function createReaders(service: Service, isLoopback: boolean): Readers {
  const { engine } = service;
  return {
    mayRead: (caller) =>
      engine.ask((state, now) => {
        const refusal = whyNotRead(state, caller);
        return refusal === null ? null : refusalAnswer(refusal, now);
      }),
    isStillGood: (shown) => isStill(shown, () => false),
    isStillKnown: (shown) => isStill(shown, ({ actor }) => actor.agentId === null),
  };

  function isStill(shown: Credentials, needsNoReading: (caller: Caller) => boolean): boolean {
    if (!engine.isServing) return true;
    const caller = authenticate(service, shown, isLoopback);
    if (!isCaller(caller)) return false;
    return needsNoReading(caller) || engine.peek((state) => whyNotRead(state, caller) === null);
  }
}
