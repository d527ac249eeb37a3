/** Who may read a tenant, for readers that stay: event streams and WebSockets. */
import { findTenantFor } from "../../kernel/views.ts";
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
        const found = findTenantFor(state, caller);
        return "code" in found ? refusalAnswer(found, now) : null;
      }),
    isStillGood(shown) {
      if (!engine.isServing) return true;
      const caller = authenticate(service, shown, isLoopback);
      return isCaller(caller) && engine.peek((state) => !("code" in findTenantFor(state, caller)));
    },
    isStillKnown(shown) {
      if (!engine.isServing) return true;
      const caller = authenticate(service, shown, isLoopback);
      if (!isCaller(caller)) return false;
      return caller.actor.agentId === null || engine.peek((state) => !("code" in findTenantFor(state, caller)));
    },
  };
}
