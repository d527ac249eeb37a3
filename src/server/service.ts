/** What every edge of the server shares. */
import type { Engine } from "../engine/engine.ts";
import type { EngineLog } from "../engine/engine-types.ts";
import type { Actor, KeyUse } from "../kernel/contract/commands.ts";
import type { Millis, Tenant } from "../kernel/contract/records.ts";
import type { Answer } from "../protocol/answers/answer.ts";
import type { Input, Operation } from "../protocol/operation.ts";
import type { Store } from "../store/store.ts";
import type { MasterKeys } from "../token/node/master-keys.ts";
import { Counts, type RequestKeys, RequestWatch, requestKeysOf } from "./answering/command-run.ts";
import { TenantUses } from "./answering/tenant-use.ts";
import type { ArtifactFiles } from "./artifacts/artifact-files.ts";
import { AgentTokens, type KeySecret, Keys } from "./auth/credentials.ts";
import type { OwnerCredential } from "./auth/owner.ts";
import { FailedLogins, type Meter, Meters, RateLimiter, type RateLimits } from "./auth/rate-limit.ts";
import { Sessions } from "./auth/sessions.ts";
import { CellConnections } from "./cells/connections.ts";
import { LeaseTokens } from "./cells/tokens.ts";
import { EventHub } from "./events/event-hub.ts";
import { BulkOperations } from "./operating/bulk-tasks.ts";
import type { Tracing } from "./operating/tracing.ts";
import { ReceiptSubmission } from "./receipts/receipts.ts";
import { type TaskKeys, taskKeysOf } from "./tasks/creating-tasks.ts";
import { Polls } from "./tasks/polls.ts";

export interface Service {
  readonly engine: Engine;
  readonly requests: RequestWatch;
  readonly polls: Polls;
  readonly bulk: BulkOperations;
  readonly receipts: ReceiptSubmission;
  readonly taskKeys: TaskKeys;
  readonly requestKeys: RequestKeys;
  readonly cells: CellConnections;
  readonly tokens: LeaseTokens;
  readonly keys: Keys;
  /** null: without keys, everybody on loopback is the operator. */
  readonly owner: OwnerCredential | null;
  readonly agentTokens: AgentTokens;
  readonly sessions: Sessions;
  readonly events: EventHub;
  readonly meters: Meters;
  readonly limiter: RateLimiter;
  readonly failedLogins: FailedLogins;
  readonly uses: TenantUses;
  readonly artifacts: ArtifactFiles;
  readonly counts: Counts;
  /** Null: no SDK of OpenTelemetry is registered. */
  tracing: Tracing | null;
  /** Where tenants are spread over several shards: which of them this is; null: there is one. */
  readonly place: Place | null;
  /** Set when the server begins to shut down: requests that come then are refused. */
  isClosing: boolean;
  readonly log: EngineLog;
}

/** The caller, as its credential says. */
export interface Caller {
  readonly tenant: string;
  readonly actor: Actor;
  /** The rate-limit buckets of the credential and its tenant; null for the loopback operator, who is not limited. */
  readonly meter: Meter | null;
  /** The secret that was shown, or that an agent's token was drawn with; null: none was. */
  readonly secret: KeySecret | null;
  /** The credential is refused from then on. */
  readonly until: Millis;
  /** Where it calls from, as far as the audit log needs it (S7). */
  readonly address?: string | undefined;
  /** Of a browser's session: what a page of this origin shows with all but GET. */
  readonly csrf?: string | undefined;
}

/** Of several shards, the one whose leader this is. What another one decides is refused here, however it came. */
export interface Place {
  readonly shard: number;
  /** What sessions are signed with on all of them. */
  readonly sessionSecret: () => string;
  /** Whether this shard decides what the tenant has. */
  takes(tenant: string): boolean;
  /** An answer where another shard decides the operation. */
  whyElsewhere(operation: Operation, input: Input, caller: Caller): Answer | null;
  /** Asks the shard that decides it, as the caller. */
  ask(sessions: Sessions, operation: Operation, input: Input, caller: Caller): Promise<Answer>;
  /** The tenants of all shards, as they are stored. */
  tenants(): Promise<readonly Tenant[]>;
  /** Hands the uses of keys to the directory's shard; there, returns those of all shards. */
  exchangeUses(uses: readonly KeyUse[]): Promise<readonly KeyUse[]>;
  /** After a change of the directory: when this resolves, other servers can read it and the shards that this one leads know it. */
  spread(store: Store): Promise<void>;
}

export function createService(
  engine: Engine,
  { agentTokenMs, ...rates }: RateLimits & { readonly agentTokenMs: number },
  masterKeys: MasterKeys,
  log: EngineLog,
  artifacts: ArtifactFiles,
  owner: OwnerCredential | null = null,
  place: Place | null = null,
): Service {
  const tokens = new LeaseTokens(masterKeys);
  const uses = new TenantUses(engine);
  const meters = new Meters(rates.tenant, (tenant) => uses.quotasOf(tenant).requestsPerSecondMax);
  const keys = new Keys(engine, meters, owner !== null);
  const agentTokens = new AgentTokens(engine, keys, meters, agentTokenMs);
  return {
    engine,
    tokens,
    cells: new CellConnections(engine, tokens, log),
    requests: new RequestWatch(engine),
    polls: new Polls(engine),
    bulk: new BulkOperations(engine),
    receipts: new ReceiptSubmission(engine),
    taskKeys: taskKeysOf(engine),
    requestKeys: requestKeysOf(engine),
    keys,
    owner,
    agentTokens,
    sessions: new Sessions(engine, keys, agentTokens, owner, place?.sessionSecret ?? null),
    events: new EventHub(engine),
    meters,
    limiter: new RateLimiter(rates.credential),
    failedLogins: new FailedLogins(rates.failures),
    uses,
    artifacts,
    counts: new Counts(),
    tracing: null,
    place,
    isClosing: false,
    log,
  };
}
