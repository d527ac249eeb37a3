/**
 * A model cannot keep time. Over HTTP every call of an agent therefore counts as its heartbeat, for as long as the call
 * lasts; and when a wait was answered with "ask again", the grant that may come before it does is collected for it (W8),
 * for as long as a model takes to think, and given back if it does not come.
 */
import { beatShare, Heartbeat } from "../../keeper/lease-keeper.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import { agentHolding, whyNotActFor } from "../../kernel/views.ts";
import type { Caller, Service } from "../service.ts";

export interface PresenceOptions {
  /** How often a call that is held beats for its agent. */
  readonly beatMs: number;
  /** How long a model may take between two calls about a request. */
  readonly thinkMs: number;
}

const usual: PresenceOptions = { beatMs: 5_000, thinkMs: 60_000 };

export interface Presence {
  /** The agent is there now, and until what is returned is called. */
  enter(caller: Caller, agentId: string): () => void;
  /** Whose request or lease it is; null where it is nobody's that is known. */
  agentOf(caller: Caller, named: { readonly requestId?: unknown; readonly leaseId?: unknown }): string | null;
  /** The request still waits, and its agent is to ask again. */
  attend(caller: Caller, agentId: string, requestId: string): void;
  close(): void;
}

export function createPresence(service: Service, options: PresenceOptions = usual): Presence {
  const { engine, requests } = service;
  const { beatMs, thinkMs } = options;
  /** By tenant and agent, what ends the attendance of a request: any call of the agent ends all in its name. */
  const attended = new Map<string, Map<string, () => void>>();

  const beat = async ({ tenant, actor }: Caller, agentId: string): Promise<number> => {
    const beating = { agentId, leaseIds: null, activity: false, entropy: unstamped };
    await engine.command({ type: "heartbeat_all", tenant, actor, ...beating });
    return beatMs;
  };

  const mayCallFor = (caller: Caller, agentId: string): boolean =>
    engine.peek((state) => whyNotActFor(state, caller, agentId) === null);

  const isCalled = (caller: Caller, agentId: string): void => {
    const name = nameOf(caller, agentId);
    for (const end of attended.get(name)?.values() ?? []) end();
    attended.delete(name);
  };

  /** Asking for it collects it; if it was granted, it is kept until the time is up, and then given back. */
  const collect = (caller: Caller, agentId: string, requestId: string, leftUntil: number): void => {
    const { tenant, actor } = caller;
    engine
      .command({ type: "collect_request", collect: true, tenant, actor, requestId, entropy: unstamped })
      .then(({ reply }) => {
        if (reply.type !== "granted") return;
        const leaseIds = reply.leases.map(({ id }) => id);
        const release = { agentId, leaseIds, versions: null, entropy: unstamped };
        keep(caller, agentId, requestId, leftUntil, () => {
          engine.command({ type: "release_all", tenant, actor, ...release }).catch(ignore);
        });
      }, ignore);
  };

  const keep = (caller: Caller, agentId: string, requestId: string, until: number, then: () => void, stop = ignore) => {
    const name = nameOf(caller, agentId);
    const its = attended.get(name) ?? new Map<string, () => void>();
    attended.set(name, its);
    const forget = (): void => {
      its.delete(requestId);
      if (its.size === 0 && attended.get(name) === its) attended.delete(name);
    };
    const timer = setTimeout(
      () => {
        forget();
        stop();
        then();
      },
      Math.max(0, until - performance.now()),
    );
    timer.unref();
    its.set(requestId, () => {
      clearTimeout(timer);
      stop();
    });
    return forget;
  };

  return {
    enter(caller, agentId) {
      // Another's call, or an older instance's, does not show that it lives.
      if (!mayCallFor(caller, agentId)) return ignore;
      isCalled(caller, agentId);
      const heartbeat = new Heartbeat({ send: () => beat(caller, agentId), lastsMs: () => beatMs / beatShare });
      void heartbeat.now();
      return () => heartbeat.stop();
    },
    agentOf({ tenant }, { requestId, leaseId }) {
      return engine.peek((state) => agentHolding(state, tenant, { requestId, leaseId }));
    },
    attend(caller, agentId, requestId) {
      const until = performance.now() + thinkMs;
      let forget: () => void = ignore;
      const stop = requests.watch(requestId, (isLast) => {
        forget();
        if (!isLast) collect(caller, agentId, requestId, until);
      });
      forget = keep(caller, agentId, requestId, until, ignore, stop);
    },
    close() {
      for (const its of attended.values()) for (const end of its.values()) end();
      attended.clear();
    },
  };
}

function nameOf({ tenant }: Caller, agentId: string): string {
  return `${tenant}\n${agentId}`;
}

function ignore(): void {
  // The next call is answered with the present state.
}
