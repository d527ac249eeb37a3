/**
 * Folds commits of the journal into the tables: the rows of many commits go in one statement, each row in its newest form,
 * and what began and ended in between is never a live row. The leader folds what it has committed from memory; the next
 * leader folds what is left there first.
 *
 * Nothing is folded twice and nothing is skipped: the statement deletes the journal's rows that it folds, and fails as a whole
 * where one of them is gone. So a deposed leader that folds beside its successor does no harm.
 */
import { StoreFault } from "./faults.ts";
import { type CommitTarget, type JournalEntry, readJournalEntry, timelineSql } from "./postgres-commit.ts";
import type { Database } from "./postgres-connection.ts";
import { columnsOf, FencedStatement } from "./postgres-statement.ts";
import { endedLeaseRow, endedRequestRow, endedTaskRow } from "./rows.ts";
import type { LiveRow } from "./store.ts";

export interface FoldStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * The rows are durable in the journal: a fold that is lost in a crash is made again, so nobody waits for the disk or a replica.
 * The setting ends with the transaction.
 */
const result = "SELECT set_config('synchronous_commit', 'off', true), 1 / count(*) AS folded FROM fence";
const endedTypes = { writes: "smallint", ended_at: "bigint" };
const taskTypes = { ended_at: "bigint", payload: "bigint" };

/** A division by zero, if one of the entries is not in the journal any more or the epoch is over. */
export function foldStatement({ schema, shard, epoch }: CommitTarget, entries: readonly JournalEntry[]): FoldStatement {
  const statement = new FencedStatement(schema, shard);
  const numbers = statement.values.push(entries.map(({ number }) => number));
  const gone = `gone AS (DELETE FROM ${schema}.journal WHERE shard = ${Number(shard)} AND number = ANY ($${numbers}::bigint[])
    AND EXISTS (SELECT 1 FROM ${schema}.shards WHERE shard = ${Number(shard)} AND epoch = ${Number(epoch)}
      AND timeline = ${timelineSql}) RETURNING 1),
    fence AS (SELECT 1 FROM gone HAVING count(*) = ${entries.length})`;
  const { puts, removes } = newestRows(entries);
  if (puts.length > 0) {
    statement.insert(
      "live",
      [
        ["n", "bigint", puts.map(({ n }) => n)],
        ["kind", "text", puts.map(({ kind }) => kind)],
        ["body", "text", puts.map(({ body }) => body)],
      ],
      "ON CONFLICT (shard, n) DO UPDATE SET kind = excluded.kind, body = excluded.body",
    );
  }
  if (removes.length > 0) statement.remove("live", removes);
  const times = (of: "ended" | "endedTasks" | "endedRequests"): number[] =>
    entries.flatMap((entry) => entry[of].map(() => entry.now));
  const keys = (of: "ended" | "endedTasks", last: "lastEnded" | "lastTask"): number[] =>
    entries.flatMap((entry) => entry[of].map((_, index) => entry[last] + 1 + index));
  const ended = entries.flatMap((entry) => entry.ended);
  if (ended.length > 0)
    statement.insert("ended", [
      ["key", "bigint", keys("ended", "lastEnded")],
      ["at", "bigint", times("ended")],
      ...columnsOf(endedLeaseRow.columns, endedTypes, ended),
    ]);
  const tasks = entries.flatMap((entry) => entry.endedTasks);
  if (tasks.length > 0)
    statement.insert("ended_tasks", [
      ["key", "bigint", keys("endedTasks", "lastTask")],
      ["at", "bigint", times("endedTasks")],
      ...columnsOf(endedTaskRow.columns, taskTypes, tasks),
    ]);
  const requests = entries.flatMap((entry) => entry.endedRequests);
  if (requests.length > 0)
    statement.insert("ended_requests", [
      ["at", "bigint", times("endedRequests")],
      ...columnsOf(endedRequestRow.columns, {}, requests),
    ]);
  return { text: statement.text(gone, result), values: statement.values };
}

/** Each row as the last commit left it. Keys only grow, so rows after the first `lastN` are not in the tables yet. */
function newestRows(entries: readonly JournalEntry[]): { puts: readonly LiveRow[]; removes: readonly number[] } {
  const puts = new Map<number, LiveRow>();
  const removes: number[] = [];
  const lastN = entries[0]?.lastN ?? 0;
  for (const entry of entries) {
    for (const put of entry.puts) puts.set(put.n, put);
    for (const n of entry.removes) {
      puts.delete(n);
      if (n <= lastN) removes.push(n);
    }
  }
  return { puts: [...puts.values()], removes };
}

/** Entries whose texts are longer than this are folded at once; so is what would make a statement longer. */
const foldChars = 4 * 1024 * 1024;
const foldAfterMs = 200;
/** Where the tables fall behind by this much, commits wait for them. */
const charsMax = 32 * 1024 * 1024;
const retryAfterMs = 500;

/** The commits of one term that are durable and not folded yet. */
export class Folder {
  readonly #target: CommitTarget;
  readonly #db: Database;
  #entries: JournalEntry[] = [];
  #chars = 0;
  #folding: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isOver = false;

  constructor(target: CommitTarget, db: Database) {
    this.#target = target;
    this.#db = db;
  }

  /** What is left of earlier terms. */
  async recover(): Promise<void> {
    for (;;) {
      const left = await this.#left();
      if (left.length === 0) return;
      // Where a deposed leader was quicker, what is left is read again.
      await this.#send(left).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
    }
  }

  async #left(): Promise<JournalEntry[]> {
    const rows = await this.#db.read(
      `SELECT number, body FROM ${this.#target.schema}.journal WHERE shard = $1 ORDER BY number LIMIT 64`,
      [this.#target.shard],
    );
    return rows.map(readJournalEntry);
  }

  /** To be called in order. Returns what the next commit has to wait for, if the tables are too far behind. */
  add(entry: JournalEntry): Promise<void> | null {
    this.#entries.push(entry);
    this.#chars += entry.chars;
    if (this.#chars >= foldChars && this.#folding === null) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), foldAfterMs).unref();
    return this.#chars > charsMax ? this.#folding : null;
  }

  /** Resolves when all that was added before is in the tables. */
  async folded(): Promise<void> {
    const last = this.#entries.at(-1);
    if (last === undefined) return;
    while (last.number >= (this.#entries[0]?.number ?? Number.POSITIVE_INFINITY)) {
      this.#folding ?? this.#start();
      await this.#folding;
    }
  }

  /** Leaves the rest to the next leader. */
  stop(): void {
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#entries = [];
  }

  #start(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#folding !== null || this.#isOver) return;
    const folding = this.#run().finally(() => {
      this.#folding = null;
    });
    this.#folding = folding;
    // Those who wait for it learn of a failure; the rest is tried again.
    folding.catch(() => {
      if (!this.#isOver) this.#timer ??= setTimeout(() => this.#start(), retryAfterMs).unref();
    });
  }

  async #run(): Promise<void> {
    const entries = this.#next();
    try {
      await this.#send(entries);
    } catch (error) {
      if (!isGone(error)) throw error;
      // Folded already, by a statement whose answer was lost.
      const [first] = await this.#left();
      const from = first?.number ?? Number.POSITIVE_INFINITY;
      if (from <= (entries[0]?.number ?? 0)) throw error;
      this.#drop(from);
      return;
    }
    const last = entries.at(-1)?.number ?? 0;
    this.#drop(last + 1);
  }

  /** As many of the oldest as one statement takes. */
  #next(): readonly JournalEntry[] {
    let chars = 0;
    const end = this.#entries.findIndex((entry, index) => {
      chars += entry.chars;
      return index > 0 && chars > foldChars;
    });
    return end < 0 ? [...this.#entries] : this.#entries.slice(0, end);
  }

  #drop(from: number): void {
    const kept = this.#entries.findIndex(({ number }) => number >= from);
    const gone = this.#entries.splice(0, kept < 0 ? this.#entries.length : kept);
    for (const { chars } of gone) this.#chars -= chars;
    if (this.#entries.length > 0 && !this.#isOver) this.#timer ??= setTimeout(() => this.#start(), foldAfterMs).unref();
  }

  async #send(entries: readonly JournalEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const { text, values } = foldStatement(this.#target, entries);
    await this.#db.read(text, values);
  }
}

const divisionByZero = "22012";

function isGone(error: unknown): boolean {
  const cause = error instanceof StoreFault ? error.cause : error;
  return (cause as { readonly code?: string } | undefined)?.code === divisionByZero;
}
