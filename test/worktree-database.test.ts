/** examples/worktree-database: a lease gives a worktree its own database, and its end takes the database away. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import pg from "pg";
import { PostgresServer } from "../src/store/embedded-postgres.ts";
import { type Folder, makeFolder, type Running, type Server, start, startServer, until } from "./cli/harness.ts";
import { temporaryFolder } from "./temporary-folder.ts";

let server: Server;
let folder: Folder;
before(async () => {
  server = await startServer();
  folder = makeFolder();
});
after(async () => {
  await server.stop();
  folder.remove();
});

/** The example's cell, with these variables; its folder holds its state, so each has its own. */
async function startCell(t: { after(work: () => Promise<void>): void }, name: string, env: Record<string, string>) {
  const place = join(folder.path, name);
  cpSync("examples/worktree-database", place, { recursive: true });
  const cell = start(["cell", "--config", join(place, "cell.json")], { env: { LEASEHOLD_URL: server.url, ...env } });
  t.after(async () => {
    cell.child.kill("SIGTERM");
    await cell.ended;
  });
  const isReady = () => (/3 of 3 resources are ready/.test(cell.output.stdout + cell.output.stderr) ? true : null);
  await until(isReady, `the cell: ${cell.output.stderr}`);
}

const inDatabase = ["run", "--any", "DB:/shop/*"];

/** A command that shows its database and holds it until the test says so; null while it has none. */
function hold(name: string, ...flags: readonly string[]): { readonly running: Running; at(): string | null } {
  const script = `echo "at $LEASEHOLD_COORDINATE"; until test -e ${join(folder.path, name)}; do sleep 0.05; done`;
  const running = server.begin([...inDatabase, ...flags, "--", "sh", "-c", script], { cwd: folder.path });
  return { running, at: () => /^at (.+)$/m.exec(running.output.stdout)?.[1] ?? null };
}

test("three worktrees at once have three SQLite databases, a fourth waits its turn, and each is gone with its lease", async (t) => {
  const databases = join(folder.path, "databases");
  await startCell(t, "sqlite", { DATABASES: databases });
  const worktrees = ["a", "b", "c"].map((name) => ({ name, ...hold(name) }));
  const files = await Promise.all(worktrees.map(({ at, name }) => until(at, `a database for ${name}`)));
  assert.equal(new Set(files).size, 3);
  for (const file of files)
    new DatabaseSync(file).exec("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1)");
  assert.equal((await server.line([...inDatabase, "-n", "--", "true"])).code, 107, "none is left");

  const fourth = hold("d");
  writeFileSync(join(folder.path, "a"), "");
  assert.equal((await worktrees[0]?.running.ended)?.code, 0);
  const file = await until(fourth.at, "the fourth gets the first one's place");
  assert.equal(file, files[0]);
  const tables = new DatabaseSync(file).prepare("SELECT name FROM sqlite_master").all();
  assert.deepEqual(tables, [], "and nothing of what was in it");

  for (const name of ["b", "c", "d"]) writeFileSync(join(folder.path, name), "");
  for (const { running } of [...worktrees, fourth]) assert.equal((await running.ended).code, 0);
  await until(() => (files.some((path) => existsSync(path)) ? null : true), "no file is left");
});

test("the database of a command that was killed is dropped when its lease ends", async (t) => {
  const databases = join(folder.path, "killed");
  await startCell(t, "killed-cell", { DATABASES: databases });
  const { running, at } = hold("never", "--ttl", "2s");
  const file = await until(at, "a database");
  assert.ok(existsSync(file));
  running.child.kill("SIGKILL");
  await until(() => (existsSync(file) ? null : true), "it is dropped");
});

test("--any needs a pattern to choose from", async () => {
  const { code, stderr } = await server.line(["run", "--any", "DB:/shop/1", "--", "true"]);
  assert.deepEqual([code, /--any takes a pattern/.test(stderr)], [2, true], stderr);
});

const hasPsql = (() => {
  try {
    execFileSync("psql", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

test("with PostgreSQL a late holder's connection ends with its lease, and its database is dropped", {
  skip:
    hasPsql && PostgresServer.isInstalled() ? false : "psql or the package embedded-postgres is not on this machine",
}, async (t) => {
  const postgres = await PostgresServer.start({ folder: temporaryFolder("leasehold-postgres-") });
  t.after(() => postgres.remove());
  await startCell(t, "postgres-cell", { DATABASE_URL: postgres.url });
  const { running, at } = hold("late");
  const url = await until(at, "a database");
  assert.match(url, /\/worktree_shop_\d$/);
  const late = new pg.Client({ connectionString: url });
  const cut = new Promise((resolve) => late.on("error", resolve));
  await late.connect();
  await late.query("CREATE TABLE orders (id INTEGER)");
  writeFileSync(join(folder.path, "late"), "");
  assert.equal((await running.ended).code, 0);
  await cut;
  const names = async () => {
    const admin = new pg.Client({ connectionString: postgres.url });
    await admin.connect();
    const { rows } = await admin.query("SELECT 1 FROM pg_database WHERE datname LIKE 'worktree_%'");
    await admin.end();
    return rows.length === 0 ? true : null;
  };
  await until(names, "it is dropped");
});
