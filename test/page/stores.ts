/** Where a server of these tests keeps its data: SQLite in a folder of its own, or PostgreSQL where the run asks for it. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServerOptions } from "../../src/server/start.ts";

export interface Kept {
  /** The same again is a restart. */
  readonly options: ServerOptions;
  remove(): Promise<void>;
}

export async function keepData(): Promise<Kept> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-page-"));
  const options = { data: folder, shutdownTimeoutMs: 500 };
  // The same tests on PostgreSQL: test/postgres/end-to-end.test.ts.
  if (process.env["LEASEHOLD_TEST_STORE"] !== "postgres")
    return { options, remove: async () => rmSync(folder, { recursive: true }) };
  const { testSchema } = await import("../../src/store/testing/postgres-fixture.ts");
  const data = await testSchema();
  const masterKeyFile = join(folder, "master.key");
  writeFileSync(masterKeyFile, randomBytes(32), { mode: 0o600 });
  return {
    options: { ...options, store: data.url, masterKeyFile, leaderLeaseMs: 30_000, shards: 2 },
    remove: async () => {
      await data.drop();
      rmSync(folder, { recursive: true });
    },
  };
}
