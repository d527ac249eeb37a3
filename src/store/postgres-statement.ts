/** One statement with many parts: each writes only where the first part, the fence, found what it must. */

export type Column = readonly [name: string, type: string, list: readonly unknown[]];

export class FencedStatement {
  /** As they are: what sends them escapes what PostgreSQL cannot store, once. */
  readonly values: unknown[] = [];
  readonly #schema: string;
  readonly #own: string;
  readonly #parts: string[] = [];

  constructor(schema: string, shard: number) {
    this.#schema = schema;
    this.#own = `${Number(shard)}`;
  }

  param(value: unknown, type: string): string {
    return `$${this.values.push(value)}::${type}`;
  }

  part(text: string): void {
    this.#parts.push(`p${this.#parts.length} AS (${text} WHERE EXISTS (SELECT 1 FROM fence))`);
  }

  /** Rows by column: each list is one parameter. */
  insert(table: string, columns: readonly Column[], tail = ""): void {
    const lists = columns.map(([, type, list]) => `$${this.values.push(arrayText(list))}::${type}[]`);
    const names = columns.map(([name]) => name);
    this.#parts.push(`p${this.#parts.length} AS (INSERT INTO ${this.#schema}.${table} (shard, ${names.join()})
      SELECT ${this.#own}, ${names.map((name) => `u.${name}`).join()} FROM unnest(${lists.join()}) AS u (${names.join()})
      WHERE EXISTS (SELECT 1 FROM fence) ${tail})`);
  }

  remove(table: string, keys: readonly number[]): void {
    this.#parts.push(`p${this.#parts.length} AS (DELETE FROM ${this.#schema}.${table} WHERE shard = ${this.#own}
      AND n = ANY ($${this.values.push(arrayText(keys))}::bigint[]) AND EXISTS (SELECT 1 FROM fence))`);
  }

  /** `heads` are the parts before the others, the fence among them. */
  text(heads: string, result: string): string {
    return `WITH ${heads}${this.#parts.map((one) => `, ${one}`).join("")} ${result}`;
  }
}

/** The columns of rows.ts; what is not text is in `types`. */
export function columnsOf(
  names: readonly string[],
  types: Readonly<Record<string, string>>,
  rows: readonly object[],
): Column[] {
  return names.map((name) => {
    const key = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const list = rows.map((row) => (row as Record<string, unknown>)[key]);
    return [name, types[name] ?? "text", name === "writes" ? list.map(Number) : list];
  });
}

/** Escapes of JSON that an array of PostgreSQL reads otherwise; it may be found where there is none. */
const otherEscape = /\\[bfnrtu]/;

/**
 * A list as PostgreSQL reads arrays. With quotes and backslashes as the only escapes that is JSON but for the outer brackets,
 * and JSON.stringify is several times as fast as the driver's loop, which gets the rest.
 */
export function arrayText(list: readonly unknown[]): unknown {
  const json = JSON.stringify(list);
  return otherEscape.test(json) ? list : `{${json.slice(1, -1)}}`;
}

/** What is put and not removed; of what is put twice, the last. */
export function lastOfEach<T extends { readonly n: number }>(
  puts: readonly T[],
  removes: readonly number[],
): readonly T[] {
  const byKey = new Map<number, T>();
  for (const put of puts) byKey.set(put.n, put);
  if (removes.length === 0) return byKey.size === puts.length ? puts : [...byKey.values()];
  for (const n of removes) byKey.delete(n);
  return [...byKey.values()];
}
