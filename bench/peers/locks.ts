/**
 * One system's lock cycles as a user's program runs them: N callers, each takes a lock on a new name and releases it,
 * again and again. Prints cycles a second, and the processor time of this process a cycle.
 *
 *   node bench/peers/locks.ts SYSTEM ADDRESS CALLERS SECONDS
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient, type Transport } from "../../src/sdk/client.ts";
import { type EtcdClient, type Lockfile, loadPeer, type RedisClient, type SqlClient } from "./clients.ts";

/** One cycle of one caller. */
type Cycle = (caller: number, name: string) => Promise<unknown>;
interface System {
  readonly cycle: Cycle;
  close(): Promise<unknown> | undefined;
}

const ttlMs = 60_000;
const warmUpMs = 700;
const postgresConnections = 16;

const systems: Readonly<Record<string, (address: string, callers: number) => Promise<System>>> = {
  redis,
  postgres,
  etcd,
  "leasehold-stream": (address, callers) => leasehold("stream", address, callers),
  "leasehold-http": (address, callers) => leasehold("http", address, callers),
  "leasehold-postgres": (address, callers) => leasehold("stream", address, callers),
  lockfile,
};

const [name = "", address = "", callersText = "1", secondsText = "3"] = process.argv.slice(2);
const open = systems[name];
if (open === undefined) throw new Error(`unknown system "${name}": ${Object.keys(systems).join(", ")}`);
console.log(JSON.stringify(await measure(open, Number(callersText), Number(secondsText))));
process.exit(0);

async function measure(
  openSystem: (address: string, callers: number) => Promise<System>,
  callers: number,
  seconds: number,
): Promise<{ readonly rate: number; readonly cpuUs: number }> {
  const system = await openSystem(address, callers);
  const began = performance.now() + warmUpMs;
  const end = began + seconds * 1_000;
  let cycles = 0;
  let cpu = process.cpuUsage();
  setTimeout(() => {
    cpu = process.cpuUsage();
  }, warmUpMs);
  const call = async (caller: number): Promise<void> => {
    for (let round = 0; performance.now() < end; round++) {
      await system.cycle(caller, `${process.pid}/${caller}/${round}`);
      const now = performance.now();
      if (now >= began && now < end) cycles++;
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  const { user, system: kernel } = process.cpuUsage(cpu);
  await system.close();
  return { rate: cycles / seconds, cpuUs: (user + kernel) / Math.max(1, cycles) };
}

/** One agent a caller, a new name each time. */
async function leasehold(transport: Transport, port: string, callers: number): Promise<System> {
  const client: Client = createClient({ url: `http://127.0.0.1:${port}`, transport });
  const agents = Array.from({ length: callers }, (_, caller) => `caller-${process.pid}-${caller}`);
  await Promise.all(agents.map((agent_id) => client.call("register_agent", { agent_id })));
  const cycle: Cycle = async (caller, key) => {
    const intents = [{ predicate: "MUTATES" as const, resource: `LOCK:/${key}` }];
    const granted = await client.call("acquire", { agent_id: agents[caller] ?? "", intents, ttl_ms: ttlMs });
    if (granted.verdict !== "GRANTED") throw new Error(`not granted: ${granted.verdict}`);
    await client.call("release_lease", { lease_id: granted.leases[0]?.id ?? "" });
  };
  return { cycle, close: () => client.close() };
}

/** The usual single-node lock: SET NX PX, and a script that deletes the key only for its owner. */
async function redis(port: string): Promise<System> {
  const { Redis } = await loadPeer<{ Redis: new (port: number) => RedisClient }>("ioredis");
  const client = new Redis(Number(port));
  const release = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`;
  const cycle: Cycle = async (caller, key) => {
    const value = `caller-${caller}-${key}`;
    if ((await client.set(`lock:${key}`, value, "PX", ttlMs, "NX")) !== "OK") throw new Error("not granted");
    if ((await client.eval(release, 1, `lock:${key}`, value)) !== 1) throw new Error("not released");
  };
  return { cycle, close: () => client.quit() };
}

/** A lease as a row, taken over when it has expired, with a fence from a sequence. */
async function postgres(url: string): Promise<System> {
  const { default: connect } = await loadPeer<{ default: (url: string, options: object) => SqlClient }>("postgres");
  const sql = connect(url, { max: postgresConnections, onnotice: () => undefined });
  await sql`create table if not exists locks (
    name text primary key, holder text not null, expires_at timestamptz not null, fence bigserial)`;
  const cycle: Cycle = async (caller, key) => {
    const holder = `caller-${caller}`;
    const rows = await sql`
      insert into locks (name, holder, expires_at) values (${key}, ${holder}, now() + ${ttlMs} * interval '1 ms')
      on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at, fence = default
      where locks.expires_at < now() returning fence`;
    if (rows.length !== 1) throw new Error("not granted");
    await sql`delete from locks where name = ${key} and holder = ${holder}`;
  };
  return { cycle, close: () => sql.end() };
}

/** A lease, a key created under it if there is none, and both removed. */
async function etcd(port: string): Promise<System> {
  const { Etcd3 } = await loadPeer<{ Etcd3: new (options: object) => EtcdClient }>("etcd3");
  const client = new Etcd3({ hosts: `http://127.0.0.1:${port}` });
  const cycle: Cycle = async (caller, key) => {
    const lease = client.lease(ttlMs / 1_000, { autoKeepAlive: false });
    const put = client
      .put(key)
      .value(`caller-${caller}`)
      .lease(await lease.grant());
    if (!(await client.if(key, "Create", "==", 0).then(put).commit()).succeeded) throw new Error("not granted");
    await client.delete().key(key);
    await lease.revoke();
  };
  return { cycle, close: () => void client.close() };
}

/** Lock files of one machine. Nothing is synced to disk: it is here because it is what many programs use. */
async function lockfile(): Promise<System> {
  const { default: files } = await loadPeer<{ default: Lockfile }>("proper-lockfile");
  const folder = mkdtempSync(join(tmpdir(), "leasehold-lockfile-"));
  const cycle: Cycle = async (_caller, key) => {
    const release = await files.lock(join(folder, key.replaceAll("/", "-")), { realpath: false });
    await release();
  };
  return { cycle, close: async () => rmSync(folder, { recursive: true, force: true }) };
}
