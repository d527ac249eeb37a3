import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertOneLine, type Folder, inTurns, makeFolder, type Server, start, startServer } from "./harness.ts";

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

const lines = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => line.trim().split(" "));

test("wrong flags and arguments: exit 2 and one line of advice", async () => {
  const wrong = lines(`
    frobnicate
    --frobnicate
    rnu
    tasks
    tasks frobnicate
    ls --wait 5
    ls a b
    acquire
    acquire X:/a -w soon
    acquire X:/a -n -w 5s
    acquire X:/a -p WRITES
    acquire X:/a --units 0
    acquire X:/a --ttl -5
    acquire X:/a -s --ttl 5s
    acquire -p RENAMES X:/a
    acquire X:/a --to X:/b
    run X:/a
    run X:/a --
    run -- true
    run X:/a -E 256 -- true
    release
    release --all
    release lse_1 --all
    renew
    verify
    verify a b --fence 1
    revoke
    revoke lse_1 --agent a
    transfer lse_1
    agents a b
    agents --state HAPPY
    agents register a --label x
    resources fence X:/a
    resources withdraw
    resources declare X:/a --capacity none
    keys create
    keys create --role king
    keys delete
    tenants set default
    tenants set default --leases-max many
    events --type lease.happened
    events --since yesterday
    completion powershell
    inbox
    tasks add
    tasks add t --inputs {
    tasks add t --priority urgent
    top
    serve --prot 1
    serve --port x
  `);
  await inTurns(wrong, async (args) => {
    const ended = await server.line(args, { cwd: folder.path });
    assert.equal(ended.code, 2, `${args.join(" ")}: ${ended.stderr}`);
    assertOneLine(ended, args.join(" "));
  });
});

test("a similar flag or command is suggested", async () => {
  assert.match((await server.line(["acquier", "X:/a"])).stderr, /did you mean acquire\?/);
  assert.match((await server.line(["ls", "--limt", "3"])).stderr, /did you mean --limit\?/);
});

test("wrong addresses: exit 2 and one line that names the address and what to do", async () => {
  const addresses = ["nonsense", "ftp://127.0.0.1", "http://", "http://user:secret@127.0.0.1:1"];
  await inTurns(addresses, async (address) => {
    for (const ended of [
      await start(["ls", "--url", address]).ended,
      await start(["ls"], { env: { LEASEHOLD_URL: address } }).ended,
    ]) {
      assert.equal(ended.code, 2, address);
      assertOneLine(ended, address);
      assert.match(ended.stderr, /--url|--key/);
      assert.ok(!ended.stderr.includes("secret"));
    }
  });
  const alone = await start(["ls", "--url", "http://127.0.0.1:9"]).ended;
  assert.equal(alone.code, 6, "a server that is not there is no wrong usage");
  assertOneLine(alone, "nobody listens");
  assert.match(alone.stderr, /start one with `leasehold`/);
  const notOurs = await start(["ls", "--url", `${server.url}/elsewhere`]).ended;
  assert.equal(notOurs.code, 1, "a server answers there, and knows no such path");
  assertOneLine(notOurs, "a wrong path");
});

test("wrong keys and tenants: exit 2 and one line", async () => {
  const wrong: readonly (readonly string[])[] = [
    ["ls", "--key", "lhk_wrong"],
    ["ls", "--key", "two words"],
    ["ls", "--key", "lhk_\nX-Evil: 1"],
    ["ls", "--tenant", "No Such"],
    ["ls", "--tenant", "nosuch"],
  ];
  await inTurns(wrong, async (args) => {
    const ended = await server.line(args);
    assert.equal(ended.code, 2, `${args.join(" ")}: ${ended.stderr}`);
    assertOneLine(ended, args.join(" "));
  });
});

test("wrong names: exit 2 and one line, whether the client or the server finds them", async () => {
  const broken = join(folder.path, "broken");
  mkdirSync(broken);
  writeFileSync(join(broken, ".leasehold.json"), "{");
  const cases: readonly (readonly [args: readonly string[], cwd: string])[] = [
    [["acquire", "src/auth.ts"], folder.path],
    [["acquire", "src/auth.ts"], broken],
    [["acquire", "FILE:relative"], folder.path],
    [["acquire", "FILE:/a/../b"], folder.path],
    [["acquire", "TASK:/a"], folder.path],
    [["acquire", "X:/a", "X:/a"], folder.path],
    [["acquire", "X:/a", "--agent", "no spaces"], folder.path],
    [["acquire", ""], folder.path],
  ];
  await inTurns(cases, async ([args, cwd]) => {
    const ended = await server.line(args, { cwd });
    assert.equal(ended.code, 2, `${args.join(" ")}: ${ended.stderr}`);
    assertOneLine(ended, args.join(" "));
  });
});

test("with --json a refusal is the server's own body on standard output, and the line is there as well", async () => {
  const { code, stdout, stderr } = await server.line(["agents", "nobody", "--json"]);
  assert.equal(code, 1);
  assert.equal((JSON.parse(stdout) as { error: string }).error, "agent_unknown");
  assert.match(stderr, /^leasehold: [^\n]+\n$/);
});

test("a reader that closes the pipe after the first line causes no error", async () => {
  const { code, stderr } = await new Promise<{ code: number | null; stderr: string }>((resolve) => {
    const running = start(["help"]);
    running.child.stdout?.destroy();
    running.child.once("close", (ended) => resolve({ code: ended, stderr: running.output.stderr }));
  });
  assert.deepEqual([code, stderr], [0, ""]);
});
