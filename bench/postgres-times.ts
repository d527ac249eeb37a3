/** What a load takes of a PostgreSQL of its own: processor time by kind of process, log, and commits of the store. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { PostgresServer } from "../src/store/embedded-postgres.ts";
import { threadTimes } from "./threads.ts";

export interface PostgresTimes {
  /** In µs, by the server's process; the writer's connection has most of it. */
  readonly processes: ReadonlyMap<string, number>;
  readonly commits: number;
  readonly logBytes: number;
  readonly logRecords: number;
}

export interface MeasuredPostgres {
  /** For the server that is measured. */
  readonly settings: readonly string[];
  times(): Promise<PostgresTimes>;
  stop(): Promise<void>;
}

/** With the settings that PostgreSQL has by itself, as the peers' (bench/peers/servers.ts). */
export async function startMeasuredPostgres(): Promise<MeasuredPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-bench-postgres-"));
  chmodSync(folder, 0o755); // Started by root it runs as another user, which has to reach its data.
  const settings = { max_connections: "100", shared_buffers: "128MB" };
  const server = await PostgresServer.start({ folder: join(folder, "postgres"), settings });
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const keyFile = join(folder, "master.key");
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  const times = async (): Promise<PostgresTimes> => {
    const { rows } = await client.query<{ pid: number; name: string }>(
      `SELECT pid, CASE WHEN query LIKE 'WITH fence%' THEN 'commits' WHEN query LIKE 'WITH gone%' THEN 'folds'
         ELSE backend_type END AS name FROM pg_stat_activity WHERE pid <> pg_backend_pid()`,
    );
    const processes = new Map<string, number>();
    for (const { pid, name } of rows) {
      let us = 0;
      for (const time of threadTimes(pid).values()) us += time;
      processes.set(name, (processes.get(name) ?? 0) + us);
    }
    const { rows: sums } = await client.query<Record<"commits" | "bytes" | "records", string>>(
      `SELECT wal_bytes AS bytes, wal_records AS records, (SELECT sum(number) FROM leasehold.shards) AS commits FROM pg_stat_wal`,
    );
    const [sum] = sums;
    const { commits = 0, bytes = 0, records = 0 } = sum ?? {};
    return { processes, commits: Number(commits), logBytes: Number(bytes), logRecords: Number(records) };
  };
  const stop = async (): Promise<void> => {
    await client.end();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { settings: ["--store", server.url, "--master-key-file", keyFile], times, stop };
}

/** What passed between the two, a cycle. */
export function postgresText(before: PostgresTimes, after: PostgresTimes, cycles: number): string {
  const parts: string[] = [];
  for (const [name, us] of after.processes) {
    const passed = (us - (before.processes.get(name) ?? 0)) / cycles;
    if (passed >= 0.5) parts.push(`${name} ${passed.toFixed(1)}`);
  }
  const commits = after.commits - before.commits;
  const log = `${((after.logBytes - before.logBytes) / cycles).toFixed(0)} bytes in ${((after.logRecords - before.logRecords) / cycles).toFixed(1)} records`;
  return `PostgreSQL: ${parts.join(", ")} · log ${log} · ${(cycles / commits).toFixed(1)} cycles a commit`;
}
