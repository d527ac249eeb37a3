/**
 * Connections to PostgreSQL, and what their failures mean. Every wait is bounded here: to connect, and for each statement.
 * Nothing needs a session: no prepared statements, no session settings, no advisory lock that outlives a transaction. So
 * a pooler in transaction mode may be in between.
 */
import pg from "pg";
import { StoreFault } from "./faults.ts";

export interface PostgresAddress {
  /** postgres://user:password@host:port/database?sslmode=…; `schema` in it names the schema, usually leasehold. */
  readonly url: string;
  readonly connectMsMax?: number;
  readonly statementMsMax?: number;
  /** Connections for reading, at most. */
  readonly readersMax?: number;
}

export type PgRow = Readonly<Record<string, string | number | null>>;

const connectMsMaxDefault = 2_000;
const statementMsMaxDefault = 30_000;
export const schemaDefault = "leasehold";
const readersMaxDefault = 4;

/**
 * PostgreSQL's text has no NUL, and clients may send one in a key: U+0001 announces what stands for it. Text without either
 * of the two is stored as it is, and JSON never has them.
 */
export function storable(value: unknown): unknown {
  if (typeof value === "string") return needsEscape.test(value) ? value.replaceAll(needsEscapeAll, escapeOne) : value;
  return Array.isArray(value) ? value.map(storable) : value;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for.
const needsEscape = /[\u0000\u0001]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same.
const needsEscapeAll = /[\u0000\u0001]/g;
const escapeOne = (found: string): string => (found === "\u0000" ? "\u00010" : "\u00011");

function stored(text: string): string {
  if (!text.includes("\u0001")) return text;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the same.
  return text.replaceAll(/\u0001([01])/g, (_, which: string) => (which === "0" ? "\u0000" : "\u0001"));
}

const int8 = 20;
const int2 = 21;
const int4 = 23;
/** Numbers are numbers: all that are stored are safe integers. The rest stays text. */
const types = {
  getTypeParser: (oid: number) => (oid === int8 || oid === int4 || oid === int2 ? Number : stored),
} as pg.CustomTypesConfig;

export class Database {
  readonly schema: string;
  readonly #url: string;
  readonly #connectMsMax: number;
  readonly #statementMsMax: number;
  readonly #readersMax: number;
  #readers: pg.Pool | null = null;

  constructor(address: PostgresAddress) {
    const { url, connectMsMax = connectMsMaxDefault, statementMsMax = statementMsMaxDefault } = address;
    const { text, schema } = readUrl(url);
    this.#readersMax = address.readersMax ?? readersMaxDefault;
    this.#url = text;
    this.schema = schema;
    this.#connectMsMax = connectMsMax;
    this.#statementMsMax = statementMsMax;
  }

  /** One connection, open and checked. `onEnd` is called once when it is lost, with the reason. */
  async connect(onEnd: (reason: Error) => void, statementMsMax = this.#statementMsMax): Promise<pg.Client> {
    const client = new pg.Client({ ...this.#config(statementMsMax), pipeline: true } as pg.ClientConfig);
    let isOver = false;
    const end = (reason: Error): void => {
      if (isOver) return;
      isOver = true;
      onEnd(reason);
    };
    client.on("error", end);
    client.on("end", () => end(new Error("the connection was closed")));
    try {
      await client.connect();
    } catch (error) {
      isOver = true;
      client.end().catch(() => undefined);
      throw explained(error, this.#url);
    }
    return client;
  }

  /** A query that changes nothing, on one of a few connections of its own: it never delays a commit. */
  async read(
    text: string,
    values: readonly unknown[] = [],
    statementMsMax = this.#statementMsMax,
  ): Promise<readonly PgRow[]> {
    if (this.#readers === null) {
      this.#readers = new pg.Pool({
        ...this.#config(this.#statementMsMax),
        max: this.#readersMax,
        idleTimeoutMillis: 30_000,
        allowExitOnIdle: true,
      });
      // A broken idle connection is replaced by the next query.
      this.#readers.on("error", () => undefined);
    }
    try {
      const query = { text, values: values.map(storable), query_timeout: statementMsMax };
      return (await this.#readers.query(query)).rows as PgRow[];
    } catch (error) {
      throw explained(error, this.#url);
    }
  }

  /** Runs statements in one transaction, on a connection of its own. */
  async transaction<T>(run: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = await this.connect(() => undefined);
    try {
      await client.query("BEGIN");
      const result = await run(client);
      await client.query("COMMIT");
      return result;
    } catch (error) {
      await client.query("ROLLBACK").catch(() => undefined);
      throw explained(error, this.#url);
    } finally {
      destroy(client);
    }
  }

  explain(error: unknown): StoreFault {
    return explained(error, this.#url);
  }

  async close(): Promise<void> {
    const readers = this.#readers;
    this.#readers = null;
    await readers?.end().catch(() => undefined);
  }

  #config(statementMsMax: number): pg.PoolConfig {
    return {
      connectionString: this.#url,
      connectionTimeoutMillis: this.#connectMsMax,
      query_timeout: statementMsMax,
      keepAlive: true,
      application_name: "leasehold",
      types,
    };
  }
}

/** Ends it without a word to the server, which may not answer any more. */
export function destroy(client: pg.Client): void {
  const { connection } = client as unknown as { readonly connection: { readonly stream: { destroy(): void } } };
  connection.stream.destroy();
  client.end().catch(() => undefined);
}

function readUrl(url: string): { readonly text: string; readonly schema: string } {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (cause) {
    throw new StoreFault("the store's address is not a URL; write postgres://user:password@host:5432/database", {
      code: "store_refused",
      cause,
    });
  }
  const schema = parsed.searchParams.get("schema") ?? schemaDefault;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new StoreFault(`"${schema}" cannot be the schema: use small letters, digits and _`, {
      code: "store_refused",
    });
  }
  parsed.searchParams.delete("schema");
  return { text: parsed.href, schema };
}

/** Where it is, without the password. */
export function placeOf(url: string): string {
  try {
    const { hostname, port, pathname } = new URL(url);
    return `${hostname}:${port || 5432}${pathname}`;
  } catch {
    return "that address";
  }
}

/** What a failure means for an operator. Only the first lines are for settings; the rest may pass by itself. */
function explained(error: unknown, url: string): StoreFault {
  if (error instanceof StoreFault) return error;
  const { code = "", message } = error as { readonly code?: string; readonly message: string };
  const refused = (text: string): StoreFault => new StoreFault(text, { code: "store_refused", cause: error });
  const place = placeOf(url);
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return refused(`there is no host for the database ${place}; check the address of the store`);
    case "ECONNREFUSED":
      return refused(`no PostgreSQL answers at ${place}; check the address of the store, and that it runs`);
    case "28P01":
    case "28000":
      return refused(`PostgreSQL at ${place} refused the login (${message}); check user, password and pg_hba.conf`);
    case "3D000":
      return refused(`PostgreSQL at ${place} has no such database (${message}); create it, or name another`);
    case "42501":
      return refused(`the database user lacks rights (${message}); grant CREATE on the database, or make it the owner`);
    default:
      return new StoreFault(`the database ${place} failed: ${message || code}`, { cause: error });
  }
}
