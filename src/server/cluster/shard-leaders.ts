/**
 * The shards of a server: one Leadership each, and how many of them this server is to lead. Shard 0 goes first; the others
 * are led once its directory can be read.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { EngineLog } from "../../engine/engine-types.ts";
import { type CountedLease, Leadership, type Term } from "../../engine/leadership.ts";
import { createPostgresStore } from "../../store/postgres.ts";
import type { SharedConnections } from "../../store/postgres-renewals.ts";
import type { Opened, Store } from "../../store/store.ts";
import type { ClusterWatch } from "./cluster-watch.ts";
import type { Directory } from "./directory.ts";
import { logOf } from "./shard-term.ts";
import { directoryShard } from "./shards.ts";
import { isToGive, mayTake, type Standing } from "./spread.ts";

export interface ShardLeadersOptions {
  readonly shards: number;
  readonly url: string;
  readonly shared: SharedConnections;
  readonly server: string;
  readonly serverUrl: string;
  readonly leaseMs: number;
  readonly mayLead: boolean;
  readonly watch: ClusterWatch;
  readonly directory: Directory;
  /** Says to the others that this server takes no shards for that time. */
  readonly rest: (ms: number) => Promise<void>;
  readonly begin: (shard: number, store: Store, opened: Opened, lease: CountedLease) => Promise<Term>;
  readonly log: EngineLog;
}

const readEveryMs = 200;
const readAloneMs = 1_000;
/** One shard moves at a time, and the next one when all are led again. */
const giveEveryMs = 1_000;
/** After it was asked to resign: time to take its machine down. */
const restMs = 30_000;
/** And it takes what is vacant only after all others could. */
const restingMs = 1_000;
/** Where the shard came back, the other server cannot lead it, and is not asked again soon. */
const notAgainMs = 60_000;
/** A start waits so long for shards that nobody leads yet. */
const startMsMax = 15_000;

export class ShardLeaders {
  readonly all: readonly Leadership[];
  readonly #options: ShardLeadersOptions;
  /** A leader asks nobody who leads; for the others, and for what is common to shards, the server asks. */
  readonly #timer: NodeJS.Timeout;
  #giveAt = 0;
  #restsUntil = 0;
  #given: { readonly shard: number; readonly own: number } | null = null;

  constructor(options: ShardLeadersOptions) {
    this.#options = options;
    const { shards, url, shared, server, serverUrl, leaseMs, mayLead, watch, begin, log } = options;
    this.all = Array.from(
      { length: shards },
      (_, shard) =>
        new Leadership({
          createStore: () => createPostgresStore({ url, shard, shared, server, serverUrl, leaseMs }),
          begin: (store, opened, lease) => begin(shard, store, opened, lease),
          ...{ mayLead, log: shards === 1 ? log : logOf(log, shard) },
          watch: () => watch.watch(shard),
          ...(shards > 1 && { mayCampaign: () => this.#mayCampaign(shard) }),
        }),
    );
    // One that fails is logged by those who wait for an answer.
    this.#timer = setInterval(() => void watch.read().catch(() => undefined), shards > 1 ? readEveryMs : readAloneMs);
    this.#timer.unref();
  }

  get first(): Leadership {
    const [first] = this.all;
    if (first === undefined) throw new TypeError("there is one shard at least");
    return first;
  }

  async start(): Promise<void> {
    const { directory, mayLead, watch } = this.#options;
    await this.first.start();
    if (this.all.length === 1) return;
    const deadline = performance.now() + (mayLead ? startMsMax : 0);
    do await directory.refresh();
    while (directory.contents === null && performance.now() < deadline && (await wait()));
    await Promise.all(this.all.slice(1).map(startOne));
    while (watch.shards.some(({ leader }) => leader === null) && performance.now() < deadline) await wait();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.all.map((one) => one.close()));
  }

  /** As an operator asks for: what it resigns does not come back at once. */
  resign(shard: number): void {
    const { rest, log } = this.#options;
    if (this.all[shard]?.state !== "leading") return;
    if (performance.now() >= this.#restsUntil)
      rest(restMs).catch((err: unknown) =>
        log.warn({ err }, "the others do not know that this server takes no shards"),
      );
    this.#restsUntil = performance.now() + restMs;
    this.#resign(shard);
  }

  #resign(shard: number): void {
    const one = this.all[shard];
    if (one?.state === "leading") one.resign();
  }

  /** After each look at the shards. */
  balance(): void {
    const { watch, server, log } = this.#options;
    for (const [shard, { leader, resignEpoch }] of watch.shards.entries())
      if (leader?.server === server && leader.epoch === resignEpoch) this.resign(shard);
    const now = performance.now();
    if (this.all.length === 1 || now < this.#giveAt) return;
    const isSettled = this.all.every(({ state }) => state === "standby" || state === "leading");
    if (!isSettled || watch.shards.some(({ leader }) => leader === null)) return;
    const standing = this.#standing();
    const own = standing.get(server) ?? 0;
    this.#giveAt = now + giveEveryMs;
    const given = this.#given;
    this.#given = null;
    if (given !== null && this.all[given.shard]?.state === "leading" && own >= given.own) {
      this.#giveAt = now + notAgainMs;
      return;
    }
    if (!isToGive(standing, server)) return;
    const shard = this.all.findLastIndex(({ state }) => state === "leading");
    this.#given = { shard, own };
    log.info({ shard, led: own }, "another server leads fewer shards: one is resigned for it");
    this.#resign(shard);
  }

  #mayCampaign(shard: number): boolean {
    const { directory, watch, server, shards } = this.#options;
    if (shard !== directoryShard && directory.contents === null) return false;
    const vacantSince = watch.shards[shard]?.vacantSince ?? null;
    const now = performance.now();
    const vacantMs = vacantSince === null ? 0 : now - vacantSince;
    return mayTake(this.#standing(), server, shards, now < this.#restsUntil ? vacantMs - restingMs : vacantMs);
  }

  /** What this server is about to lead counts too. */
  #standing(): Standing {
    const { watch, server } = this.#options;
    const standing = new Map(watch.servers.map((name) => [name, 0]));
    for (const { leader } of watch.shards) {
      const count = leader === null ? undefined : standing.get(leader.server);
      if (leader !== null && count !== undefined) standing.set(leader.server, count + 1);
    }
    standing.set(server, this.all.filter(({ state }) => isTaken(state)).length);
    return standing;
  }
}

/** A shard that cannot be loaded is logged and tried again; the others are served. */
async function startOne(one: Leadership): Promise<void> {
  try {
    await one.start();
  } catch (fault) {
    if (!one.isRunning) throw fault;
  }
}

function isTaken(state: Leadership["state"]): boolean {
  return state === "campaigning" || state === "loading" || state === "leading";
}

async function wait(): Promise<true> {
  await sleep(50);
  return true;
}
