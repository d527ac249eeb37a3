/**
 * Connections that renew leases and do nothing else, so that no other statement stands before them. A server that leads
 * several shards has a few for all of them: a renewal may have to wait for a commit of its shard, and others go past it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { storeClosed } from "./faults.ts";
import { Database, destroy, type PostgresAddress } from "./postgres-connection.ts";

/** With a renewal due at every quarter of the lease, one that hangs leaves time for another. */
const leaseShare = 3;
const waitMs = 5;

export class Renewals {
  readonly #db: Database;
  readonly #timeoutMs: number;
  readonly #max: number;
  #idle: pg.Client[] = [];
  #busy = 0;
  /** Raised when all are dropped: one that is under way then is destroyed when it is done. */
  #generation = 0;

  constructor(db: Database, leaseMs: number, max = 1) {
    this.#db = db;
    this.#timeoutMs = Math.floor(leaseMs / leaseShare);
    this.#max = max;
  }

  /** Ahead of the first renewal. */
  async connect(): Promise<void> {
    if (this.#idle.length + this.#busy > 0) return;
    const generation = this.#generation;
    this.#busy++;
    try {
      const client = await this.#open();
      if (generation === this.#generation) this.#idle.push(client);
      else destroy(client);
    } finally {
      this.#busy--;
    }
  }

  /** Given up well before the lease ends. One message, so that a pooler may be in between. Returns how many rows it found. */
  async update(statement: string): Promise<number | null> {
    const generation = this.#generation;
    const client = await this.#take();
    try {
      if (generation !== this.#generation) throw storeClosed();
      const results = (await client.query(
        `BEGIN; SET LOCAL statement_timeout = ${this.#timeoutMs}; ${statement}; COMMIT`,
      )) as unknown as readonly pg.QueryResult[];
      if (generation === this.#generation) this.#idle.push(client);
      else destroy(client);
      return results[2]?.rowCount ?? null;
    } catch (error) {
      destroy(client);
      throw this.#db.explain(error);
    } finally {
      this.#busy--;
    }
  }

  drop(): void {
    this.#generation++;
    for (const client of this.#idle.splice(0)) destroy(client);
  }

  /** Counted as busy from here on. */
  async #take(): Promise<pg.Client> {
    const deadline = performance.now() + this.#timeoutMs;
    while (this.#busy >= this.#max) {
      if (performance.now() > deadline) throw this.#db.explain(new Error("other renewals take too long"));
      await sleep(waitMs);
    }
    this.#busy++;
    const client = this.#idle.pop();
    if (client !== undefined) return client;
    try {
      return await this.#open();
    } catch (error) {
      this.#busy--;
      throw error;
    }
  }

  /** One that is lost while nobody uses it is not used again. */
  async #open(): Promise<pg.Client> {
    let client: pg.Client | null = null;
    client = await this.#db.connect(() => {
      this.#idle = this.#idle.filter((one) => one !== client);
    }, this.#timeoutMs);
    return client;
  }
}

/** What the stores of one server share. Elections have their own connections, so that no question to history delays one. */
export interface SharedConnections {
  readonly elections: Database;
  readonly history: Database;
  readonly renewals: Renewals;
}

const electionReadersMax = 2;
/** For folds of all its shards too. */
const historyReadersMax = 6;
const renewersMax = 3;

/** At most 11 connections, and one for each shard that the server leads. */
export function shareConnections(address: PostgresAddress, leaseMs: number): SharedConnections {
  const elections = new Database({ ...address, readersMax: electionReadersMax });
  const history = new Database({ ...address, readersMax: historyReadersMax });
  return { elections, history, renewals: new Renewals(elections, leaseMs, renewersMax) };
}

export async function closeShared({ elections, history, renewals }: SharedConnections): Promise<void> {
  renewals.drop();
  await Promise.all([elections.close(), history.close()]);
}
