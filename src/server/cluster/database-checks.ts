/** What a server finds out about its database before it trusts it: how durable it is, and what its clock says. */
import type { EngineLog } from "../../engine/engine-types.ts";
import { StoreFault } from "../../store/faults.ts";
import type { Database } from "../../store/postgres-connection.ts";

export interface Durability {
  readonly version: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly synchronousCommit: string;
  readonly synchronousReplicas: number;
  readonly asynchronousReplicas: number;
  /** Tables of the service that PostgreSQL does not keep through a crash. */
  readonly unlogged: readonly string[];
}

/** Clocks that differ by more than this: times that people see would be wrong, and so would be the first one stored. */
const clockOffMsMax = 5 * 60_000;

export async function readDurability(db: Database): Promise<Durability> {
  const [row] = await db.read(
    `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes, current_setting('synchronous_commit') AS synchronous_commit,
       (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS sync,
       (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('async', 'potential')) AS async,
       coalesce((SELECT string_agg(c.relname, ' ') FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relpersistence = 'u'), '') AS unlogged`,
    [db.schema],
  );
  const text = (name: string): string => String(row?.[name] ?? "");
  return {
    version: text("version"),
    fsync: text("fsync"),
    fullPageWrites: text("full_page_writes"),
    synchronousCommit: text("synchronous_commit"),
    synchronousReplicas: Number(row?.["sync"]),
    asynchronousReplicas: Number(row?.["async"]),
    unlogged: text("unlogged").split(" ").filter(Boolean),
  };
}

/** What would lose acknowledged changes in a crash, as sentences. */
export function volatileSettings({
  fsync,
  fullPageWrites,
  synchronousCommit,
  unlogged,
}: Durability): readonly string[] {
  return [
    ...(fsync === "off" ? ["fsync is off"] : []),
    ...(fullPageWrites === "off" ? ["full_page_writes is off"] : []),
    ...(synchronousCommit === "off" ? ["synchronous_commit is off"] : []),
    ...(unlogged.length > 0 ? [`unlogged tables: ${unlogged.join(", ")}`] : []),
  ];
}

/** S1: refuses a database that may lose what it acknowledges, unless the operator accepts that. */
export async function checkDurability(db: Database, acceptVolatile: boolean, log: EngineLog): Promise<void> {
  const found = await readDurability(db);
  const volatile = volatileSettings(found);
  if (volatile.length > 0 && !acceptVolatile) {
    throw new StoreFault(
      `the database may lose what it has acknowledged (${volatile.join("; ")}); set it right, or start with --accept-volatile`,
      { code: "store_refused" },
    );
  }
  const { synchronousReplicas, asynchronousReplicas } = found;
  const isBehind = synchronousReplicas === 0 && asynchronousReplicas > 0;
  log.info(
    { ...found },
    isBehind ? "the database has asynchronous replicas: one that is promoted may lack changes" : "the database",
  );
}

/** All servers go on by the database's clock; one whose own is far off would show and log wrong times. */
export async function checkClock(db: Database, wall: () => number): Promise<void> {
  const before = wall();
  const [row] = await db.read("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now");
  const off = (before + wall()) / 2 - Number(row?.["now"]);
  if (Math.abs(off) <= clockOffMsMax) return;
  const [minutes, where] = [Math.round(Math.abs(off) / 60_000), off > 0 ? "ahead of" : "behind"];
  throw new StoreFault(`this machine's clock is ${minutes} min ${where} the database's; set both by NTP`, {
    code: "store_refused",
  });
}
