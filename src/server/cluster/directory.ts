/**
 * The directory as one server knows it: which tenants exist, keys and policies of all. Shard 0 decides it; every server reads
 * its rows when shard 0 has committed something, and at once when it meets a credential or tenant that it does not know.
 * What has changed goes to the engines of the server's other shards before anybody is answered with it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { EngineLog, SecretBox } from "../../engine/engine-types.ts";
import { directoryKinds, readDirectory, type StoredDirectory } from "../../engine/stored-directory.ts";
import type { Role } from "../../kernel/contract/records.ts";
import type { Database } from "../../store/postgres-connection.ts";
import { isKnownSql } from "../../store/postgres-leading.ts";
import { hashSecret } from "../auth/credentials.ts";
import { directoryShard } from "./shards.ts";

/** Whom a key stands for, as far as it matters where its requests go. */
export interface KeyHolder {
  readonly tenant: string;
  readonly role: Role;
}

/** Takes the directory into one shard's engine. */
export type Adopt = (directory: StoredDirectory) => Promise<void>;

const readMsMax = 2_000;
/** Unknown credentials without end cost one question in this time, and one read of the whole in four times what that takes. */
const betweenMs = 50;
const betweenShare = 4;
/** By itself, a large directory is read in a tenth of the time at most. */
const restShare = 10;
/** An engine that does not commit must not keep the others from the directory; it has decided the adoption all the same. */
const adoptMsMax = 500;

export class Directory {
  readonly #db: Database;
  readonly #box: SecretBox;
  readonly #log: EngineLog;
  readonly #adopters = new Set<Adopt>();
  #contents: StoredDirectory | null = null;
  #text = "";
  #tenants: ReadonlySet<string> = new Set();
  #byHash = new Map<string, KeyHolder>();
  #byId = new Map<string, KeyHolder>();
  #reading: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #beganAt = Number.NEGATIVE_INFINITY;
  #tookMs = 0;
  /** Of shard 0, when the last read began. */
  #mark = "";
  /** Raised when its contents change. */
  version = 0;

  constructor(db: Database, box: SecretBox, log: EngineLog) {
    this.#db = db;
    this.#box = box;
    this.#log = log;
  }

  /** Null: shard 0 has not recovered since the database was set up or restored, and no other shard may be led. */
  get contents(): StoredDirectory | null {
    return this.#contents;
  }

  hasTenant(tenant: string): boolean {
    return this.#tenants.has(tenant);
  }

  holderOfSecret(secret: string): KeyHolder | null {
    return this.#byHash.get(hashSecret(secret)) ?? null;
  }

  holderOfKey(keyId: string): KeyHolder | null {
    return this.#byId.get(keyId) ?? null;
  }

  /** Returns how it leaves. What is there now it gets at once. */
  async join(adopt: Adopt): Promise<() => void> {
    this.#adopters.add(adopt);
    try {
      await this.refresh();
      const { contents } = this;
      if (contents === null) throw new Error("the directory's shard has not recovered yet");
      await adopt(contents);
    } catch (fault) {
      this.#adopters.delete(adopt);
      throw fault;
    }
    return () => void this.#adopters.delete(adopt);
  }

  /** Called with every look at the shards: `mark` is another one after each commit of shard 0. */
  note(mark: string): void {
    if (mark === this.#mark || this.#reading !== null) return;
    if (performance.now() - this.#beganAt < this.#tookMs * restShare) return;
    this.refresh().catch((fault: unknown) => this.#log.warn({ err: fault }, "the directory could not be read"));
  }

  /** Reads what was stored before the call; those that call meanwhile share one read. */
  refresh(): Promise<void> {
    if (this.#reading === null) {
      this.#reading = this.#read().finally(() => {
        this.#reading = null;
      });
      return this.#reading;
    }
    this.#next ??= this.#reading
      .catch(() => undefined)
      .then(() => sleep(Math.max(0, this.#beganAt + this.#betweenMs - performance.now())))
      .then(() => {
        this.#next = null;
        return this.refresh();
      });
    return this.#next;
  }

  get #betweenMs(): number {
    return Math.max(betweenMs, this.#tookMs * betweenShare);
  }

  async #read(): Promise<void> {
    this.#beganAt = performance.now();
    const { schema } = this.#db;
    const [found] = await this.#db.read(
      `SELECT epoch, number, restores, ${isKnownSql}::int AS is_known, ${unfoldedSql(schema)} AS unfolded
       FROM ${schema}.shards WHERE shard = ${directoryShard}`,
      [],
      readMsMax,
    );
    if (found !== undefined && markOf(found) === this.#mark) return;
    this.#beganAt = performance.now();
    const rows = await this.#db.read(
      `SELECT s.epoch, s.number, s.restores, s.restored_at, ${isKnownSql}::int AS is_known, ${unfoldedSql(schema)} AS unfolded,
         l.n, l.kind, l.body
       FROM ${schema}.shards AS s LEFT JOIN ${schema}.live AS l ON l.shard = ${directoryShard}
         AND l.kind IN (${directoryKinds.map((kind) => `'${kind}'`).join()})
       WHERE s.shard = ${directoryShard} ORDER BY l.n`,
      [],
      readMsMax,
    );
    const [first] = rows;
    const stored = rows.flatMap(({ n, kind, body }) =>
      kind === null ? [] : [{ n: Number(n), kind: String(kind), body: String(body) }],
    );
    const restores = { restores: Number(first?.["restores"]), restoredAt: Number(first?.["restored_at"]) };
    const read = first?.["is_known"] === 1 ? readDirectory(stored, restores, this.#box) : null;
    await this.#take(read);
    // Only now: what failed is read again.
    this.#mark = first === undefined ? "" : markOf(first);
    this.#tookMs = performance.now() - this.#beganAt;
  }

  async #take(read: StoredDirectory | null): Promise<void> {
    const text = JSON.stringify(read);
    if (text === this.#text) return;
    if (read !== null) {
      // One that fails to has an engine that is at its end.
      const adopted = Promise.allSettled(Array.from(this.#adopters, (adopt) => adopt(read)));
      await Promise.race([adopted, sleep(adoptMsMax, undefined, { ref: false })]);
    }
    this.#text = text;
    this.#contents = read;
    this.#tenants = new Set(read?.tenants.map(({ tenantId }) => tenantId));
    this.#byHash = new Map();
    this.#byId = new Map();
    for (const { id, tenant, role, hash, formerHash } of read?.keys ?? []) {
      const holder = { tenant, role };
      this.#byId.set(id, holder);
      this.#byHash.set(hash, holder);
      if (formerHash !== null) this.#byHash.set(formerHash, holder);
    }
    this.version++;
  }
}

/** Another one after each commit, fold, campaign and restore of the shard. */
export function markOf(row: Readonly<Record<string, unknown>>): string {
  return `${row["epoch"]} ${row["number"]} ${row["unfolded"]} ${row["restores"]} ${row["is_known"]}`;
}

/** The first commit of shard 0 that is not in its tables yet: what is read now may be another thing after its fold. */
export function unfoldedSql(schema: string): string {
  return `(SELECT coalesce(min(j.number), 0) FROM ${schema}.journal AS j WHERE j.shard = ${directoryShard})`;
}
