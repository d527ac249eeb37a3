/** What every edge of the server shares: the engine, who may ask, who watches what, and what is counted. */
import type { Engine } from "../engine/engine.ts";
import type { EngineLog } from "../engine/terms.ts";
import type { Actor } from "../kernel/contract/commands.ts";
import type { MasterKeys } from "../token/node/master-keys.ts";
import { AgentTokenCache } from "./auth/agent-token-cache.ts";
import { KeyRing } from "./auth/key-ring.ts";
import { createRateLimiter, type Meter, type RateLimit, type RateLimiter } from "./auth/rate-limit.ts";
import { CellDesk } from "./cells/desk.ts";
import { TokenOffice } from "./cells/tokens.ts";
import { createEventHub, type EventHub } from "./events/event-hub.ts";
import { createTally, type Tally } from "./operating/tally.ts";
import { createReceiptDesk, type ReceiptDesk } from "./receipts/receipt-desk.ts";
import { type RequestWatch, watchRequests } from "./tasks/held-requests.ts";
import { createPollDesk, type PollDesk } from "./tasks/poll-desk.ts";

export interface Service {
  readonly engine: Engine;
  readonly requests: RequestWatch;
  readonly polls: PollDesk;
  readonly receipts: ReceiptDesk;
  readonly cells: CellDesk;
  readonly tokens: TokenOffice;
  readonly keys: KeyRing;
  readonly agentTokens: AgentTokenCache;
  readonly events: EventHub;
  readonly limiter: RateLimiter;
  readonly tally: Tally;
  readonly log: EngineLog;
}

/** Who asks, as the credential says. */
export interface Caller {
  readonly tenant: string;
  readonly actor: Actor;
  /** What the credential's requests are counted with; null for whoever needs none, because the server is its own. */
  readonly meter: Meter | null;
}

export function createService(
  engine: Engine,
  rateLimit: RateLimit | null,
  masterKeys: MasterKeys,
  log: EngineLog,
): Service {
  const tokens = new TokenOffice(masterKeys);
  return {
    engine,
    tokens,
    cells: new CellDesk(engine, tokens, log),
    requests: watchRequests(engine),
    polls: createPollDesk(engine),
    receipts: createReceiptDesk(engine),
    keys: new KeyRing(engine),
    agentTokens: new AgentTokenCache(engine),
    events: createEventHub(engine),
    limiter: createRateLimiter(rateLimit),
    tally: createTally(),
    log,
  };
}
