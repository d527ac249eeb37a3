/** One time of leading one shard: an engine, its edges, and the folder of its keys. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Engine } from "../../engine/engine.ts";
import type { EngineLog } from "../../engine/engine-types.ts";
import type { CountedLease, Term } from "../../engine/leadership.ts";
import { defaultTenant } from "../../engine/recovery.ts";
import type { StoredDirectory } from "../../engine/stored-directory.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import { openLedgerKey } from "../../ledger/key-file.ts";
import { eventText } from "../../protocol/watching/event-json.ts";
import type { Database } from "../../store/postgres-connection.ts";
import type { Opened, Store } from "../../store/store.ts";
import type { ArtifactFiles } from "../artifacts/artifact-files.ts";
import { composeServer, type ServerFront } from "../compose.ts";
import type { Config } from "../config/config.ts";
import type { Service } from "../service.ts";
import type { Cluster } from "./cluster.ts";
import type { Front } from "./front.ts";
import { type MasterKey, SharedSecrets } from "./secrets.ts";
import type { ShardMetrics } from "./shard-metrics.ts";
import { type ShardedServer, ShardGate, ShardPlace } from "./shard-place.ts";
import { directoryShard, shardOfTenant } from "./shards.ts";

/** What every term of a server is made with. */
export interface TermSetting extends ShardedServer {
  readonly config: Config & { readonly log: EngineLog };
  readonly key: MasterKey;
  readonly secretsDb: Database;
  /** Of this process, for its user alone. */
  readonly folder: string;
  readonly front: Front;
  readonly address: ServerFront["address"];
  readonly artifacts: ArtifactFiles;
  readonly metrics: ShardMetrics;
  /** Each compose takes a while: between two of them the loop renews leases. */
  readonly turn: () => Promise<void>;
  readonly cluster: Omit<Cluster, "epoch" | "since">;
}

export interface ShardTerm extends Term {
  readonly service: Service;
}

const directoryActor = { role: "operator", agentId: null, epoch: null } as const;

export async function beginTerm(
  setting: TermSetting,
  shard: number,
  { store, opened, lease }: { readonly store: Store; readonly opened: Opened; readonly lease: CountedLease },
): Promise<ShardTerm> {
  const { config, key, front, address, directory, shards, cluster } = setting;
  const log = shards === 1 ? config.log : logOf(config.log, shard);
  const folder = folderOf(setting.folder, shard);
  const over = Promise.withResolvers<unknown>();
  const secrets = new SharedSecrets(setting.secretsDb, key, shard);
  await secrets.unpack(folder);
  const engine = new Engine({
    ...{ store, opened, encodeEvent: eventText, log, onTermOver: over.resolve, secrets: key.box("engine") },
    makesDefaultTenant: shard === directoryShard,
    ledgerKey: () => openLedgerKey(folder),
  });
  await engine.start();
  lease.now = engine.now;
  let service: Service | null = null;
  const leave = shards === 1 || shard === directoryShard ? null : await directory.join(adopt);
  try {
    let inner: Parameters<ServerFront["hand"]>[0] = null;
    const place = shards === 1 ? null : new ShardPlace(shard, setting);
    const own: ServerFront = {
      ...{ address, handOver: setting.handOver, origin: new URL(address.url).origin, artifacts: setting.artifacts },
      cluster: { ...cluster, epoch: opened.epoch, since: engine.now() },
      hand: (server) => {
        inner = server;
        if (server === null) front.serve(shard, null);
      },
      ...(place !== null && {
        place,
        elsewhere: (connections) => new ShardGate(shard, setting, connections),
        metrics: (metrics) => setting.metrics.add(shard, metrics),
      }),
    };
    await setting.turn();
    const folders = { ...config, log, artifactsFolder: config.data };
    const running = await composeServer(engine, folders, folder, () => leave?.(), own);
    service = running.service;
    running.service.tokens.store = () => secrets.store(folder);
    // New keys are stored before anything that was made with them can leave.
    await secrets.store(folder).catch(async (fault: unknown) => {
      await running.abort();
      throw fault;
    });
    if (inner !== null) front.serve(shard, { server: inner, isGood: lease.isGood });
    const { service: serving } = running;
    return {
      ...{ over: over.promise, now: engine.now, service: serving },
      close: () => running.close(),
      abort: () => running.abort(),
    };
  } catch (fault) {
    leave?.();
    throw fault;
  }

  /** Whose credentials have changed is known here before anybody is answered by them. */
  async function adopt({ tenants, keys, policies }: StoredDirectory): Promise<void> {
    const own = tenants.filter(({ tenantId }) => shardOfTenant(tenantId, shards) === shard);
    const caller = { tenant: defaultTenant, actor: directoryActor, entropy: unstamped };
    await engine.command({ type: "adopt_directory", ...caller, tenants: own, keys, policies });
    service?.keys.noteChange();
    service?.polls.wakeAll();
  }
}

/** The first shard has the place of a database with one. */
function folderOf(folder: string, shard: number): string {
  if (shard === 0) return folder;
  const own = join(folder, `shard-${shard}`);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  return own;
}

export function logOf(log: EngineLog, shard: number): EngineLog {
  return {
    info: (details, message) => log.info({ shard, ...details }, message),
    warn: (details, message) => log.warn({ shard, ...details }, message),
    error: (details, message) => log.error({ shard, ...details }, message),
  };
}
