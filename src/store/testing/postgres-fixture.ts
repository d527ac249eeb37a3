/** One PostgreSQL for all tests of a run, and a schema for each of them. Never skipped: without a server the test fails. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import pg from "pg";
import { PostgresServer } from "../embedded-postgres.ts";

let own: Promise<PostgresServer> | null = null;
let schemas = 0;

/** The address of the run's server (`npm test` starts it), or of one that is started for this file. */
export async function postgresUrl(): Promise<string> {
  const { LEASEHOLD_TEST_POSTGRES: shared } = process.env;
  if (shared) return shared;
  own ??= PostgresServer.start({ folder: mkdtempSync(join(tmpdir(), "leasehold-postgres-")) });
  return (await own).url;
}

after(async () => {
  if (own !== null) await (await own).remove();
});

export interface TestSchema {
  readonly url: string;
  readonly schema: string;
  query(text: string): Promise<readonly Record<string, unknown>[]>;
  drop(): Promise<void>;
}

/** A schema of its own: as good as a database of its own, and made in no time. */
export async function testSchema(base?: string): Promise<TestSchema> {
  const url = new URL(base ?? (await postgresUrl()));
  const schema = `t${process.pid}_${++schemas}`;
  url.searchParams.set("schema", schema);
  const query = async (text: string): Promise<readonly Record<string, unknown>[]> => {
    const plain = new URL(url);
    plain.searchParams.delete("schema");
    const client = new pg.Client({ connectionString: plain.href });
    await client.connect();
    try {
      return (await client.query(text)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  };
  return {
    url: url.href,
    schema,
    query,
    drop: async () => void (await query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)),
  };
}
