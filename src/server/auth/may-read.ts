/** Who may look at a tenant. What they may change is decided by the kernel; looking is decided here. */

import type { Actor } from "../../kernel/contract/commands.ts";
import { type Refusal, refuse } from "../../kernel/contract/refusals.ts";
import type { State } from "../../kernel/kernel.ts";
import { findTenant, mayActFor } from "../../kernel/memory/actors.ts";
import type { TenantEntry } from "../../kernel/memory/state.ts";
import { type Answer, refusalAnswer } from "../../protocol/answers/answer.ts";
import type { Caller, Service } from "../service.ts";
import { authenticate, type Credentials, isCaller } from "./authenticate.ts";

export interface Looking {
  readonly tenant: string;
  readonly actor: Actor;
}

/** An agent looks with its token, and only its newest instance does (A3); a key that registers agents is no agent. */
export function findTenantFor(state: State, { tenant: id, actor }: Looking): TenantEntry | Refusal {
  const tenant = findTenant(state, id);
  if ("code" in tenant || actor.role !== "agent") return tenant;
  if (actor.agentId === null) {
    return refuse("forbidden", "This key registers agents; use the agent_token of one of them for this.");
  }
  const agent = tenant.agents.get(actor.agentId);
  if (agent === undefined) return refuse("agent_unknown", "There is no such agent; register it first.");
  return mayActFor(actor, agent) ?? tenant;
}

/** For those who go on looking: whether they may at first, and whether they still may later. */
export interface Readers {
  mayRead(caller: Caller): Promise<Answer | null>;
  isStillGood(shown: Credentials): boolean;
  /** The same for those who may act without being allowed to look: a key that registers agents. */
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
