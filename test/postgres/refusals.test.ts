/** What a server on PostgreSQL refuses at its start: one line that says what to do, and an exit code, by real processes. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startServer } from "../../src/server/start.ts";
import { PostgresServer } from "../../src/store/embedded-postgres.ts";
import { testSchema } from "../../src/store/testing/postgres-fixture.ts";
import { start, startServer as startMemoryServer } from "../cli/harness.ts";
import { startOldServer } from "./old-server.ts";

test("a server that cannot use its database ends with one line that says what to do, and never with the password", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-refusals-"));
  const data = await testSchema();
  const user = `r_${data.schema}`;
  await data.query(`CREATE ROLE ${user} LOGIN PASSWORD 'hunter2'`);
  t.after(async () => {
    await data.drop();
    await data.query(`DROP ROLE ${user}`);
    rmSync(folder, { recursive: true });
  });
  const keyOf = (name: string): string => {
    const file = join(folder, name);
    writeFileSync(file, Buffer.alloc(32, name), { mode: 0o600 });
    return file;
  };
  const masterKey = keyOf("a.key");
  const serve = (store: string, key = masterKey) =>
    start([
      "serve",
      "--port",
      "0",
      "--log-level",
      "error",
      "--data",
      folder,
      "--store",
      store,
      "--master-key-file",
      key,
    ]).ended;
  const refuses = async (what: ReturnType<typeof serve>, line: RegExp, code = 2): Promise<void> => {
    const { code: ended, stderr } = await what;
    assert.equal(ended, code, stderr);
    assert.match(stderr, line);
    assert.equal(stderr.trimEnd().split("\n").length, 1, stderr);
    assert.doesNotMatch(stderr, /hunter2/);
  };
  const at = (change: object): string => Object.assign(new URL(data.url), change).href;

  await refuses(
    serve(at({ port: "1", username: "x", password: "hunter2" })),
    /no PostgreSQL answers at .*check the address/,
  );
  await refuses(
    serve(at({ hostname: "no-such-host.invalid" })),
    /there is no host for the database .*check the address/,
  );
  await refuses(serve(at({ pathname: "/absent" })), /has no such database .*create it, or name another/);
  await refuses(serve(at({ username: user, password: "hunter2" })), /lacks rights .*grant CREATE/);
  await refuses(
    serve(at({ search: `${new URL(data.url).search}&options=-c%20synchronous_commit%3Doff` })),
    /synchronous_commit is off.*--accept-volatile/,
  );

  const server = await startServer({ port: 0, store: data.url, masterKeyFile: masterKey, data: folder });
  await server.close();
  await refuses(serve(data.url, keyOf("b.key")), /the master key does not open the secrets .*--master-key-file/);
  await data.query(`ALTER TABLE ${data.schema}.servers SET UNLOGGED`);
  await refuses(serve(data.url), /may lose what it has acknowledged \(unlogged tables: servers\).*--accept-volatile/);
  await data.query(`ALTER TABLE ${data.schema}.servers SET LOGGED`);
  const open = keyOf("c.key");
  chmodSync(open, 0o644);
  await refuses(serve(data.url, open), /others may read it; set its mode to 0600/);
  await data.query(`INSERT INTO ${data.schema}.schema_steps (step) VALUES (999)`);
  await refuses(serve(data.url), /schema 999, written by a newer Leasehold.*Upgrade it/, 4);
});

test("a PostgreSQL older than 14 and one without fsync are refused; --accept-volatile takes the latter", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-refusals-"));
  const old = await startOldServer(130_014);
  const hasty = await PostgresServer.start({
    folder: mkdtempSync(join(tmpdir(), "leasehold-postgres-")),
    settings: { fsync: "off" },
  });
  t.after(async () => {
    await old.close();
    await hasty.remove();
    rmSync(folder, { recursive: true });
  });
  const masterKeyFile = join(folder, "master.key");
  writeFileSync(masterKeyFile, Buffer.alloc(32, "k"), { mode: 0o600 });
  const common = ["--port", "0", "--log-level", "error", "--data", folder, "--master-key-file", masterKeyFile];
  const serve = (store: string) => start(["serve", ...common, "--store", store]).ended;

  const tooOld = await serve(old.url);
  assert.equal(tooOld.code, 2, tooOld.stderr);
  assert.match(tooOld.stderr, /^leasehold: PostgreSQL 13 is too old; Leasehold needs 14 or newer\n$/);
  const refused = await serve(hasty.url);
  assert.equal(refused.code, 2, refused.stderr);
  assert.match(refused.stderr, /^leasehold: .*\(fsync is off\); .*--accept-volatile\n$/);
  const server = await startServer({ port: 0, store: hasty.url, masterKeyFile, data: folder, acceptVolatile: true });
  await server.close();
});

test("doctor --store says how durable a database is, and what is wrong with it", async (t) => {
  const server = await startMemoryServer();
  t.after(() => server.stop());
  const data = await testSchema();
  const doctor = (store: string) => server.line(["doctor", "--store", store]);
  const good = await doctor(data.url);
  assert.match(good.stdout, /ok +database PostgreSQL \d+.* answers in .*synchronous_commit is on, 0 synchronous/);
  const url = new URL(data.url);
  url.searchParams.set("options", "-c synchronous_commit=off");
  const off = await doctor(url.href);
  assert.equal(off.code, 7);
  assert.match(off.stdout, /problem +database .*may lose what it has acknowledged \(synchronous_commit is off\)/);
  assert.match((await doctor("postgres://127.0.0.1:1/x")).stdout, /problem +database no PostgreSQL answers/);
});
