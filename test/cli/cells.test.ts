import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import * as shapes from "../../src/protocol/leases/shapes.ts";
import type { CellView, Resource } from "../../src/sdk/wire.ts";
import { mint } from "../../src/token/index.ts";
import { CellKeys } from "../../src/token/node/cell-keys.ts";
import {
  assertFits,
  assertOneLine,
  type Folder,
  makeFolder,
  type Server,
  start,
  startServer,
  until,
} from "./harness.ts";

let server: Server;
let folder: Folder;
const service = createServer((_request, response) => void response.end("served"));

before(async () => {
  server = await startServer();
  folder = makeFolder();
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  await server.stop();
  folder.remove();
  service.close();
});

function configOf(name: string, resources: readonly object[], settings: object = {}): string {
  const file = join(folder.path, `${name}.json`);
  writeFileSync(file, JSON.stringify({ cell: name, ...settings, resources }));
  return file;
}

const web = (resource: string) => ({
  resource,
  driver: "http",
  options: { target: `http://127.0.0.1:${(service.address() as AddressInfo).port}` },
});

const keys = new CellKeys("lab-1", [{ id: "k1", key: new Uint8Array(32).fill(5), retiresAt: null }]);
const claims = {
  tenant: "acme",
  cell: "lab-1",
  resource: "GPU:/a",
  lease: "lse_1",
  generation: 2,
  fence: 41,
  predicate: "MUTATES",
};
const token = (): string => mint(keys, { ...claims, expiresAt: Date.now() + 60_000 }, Date.now());

describe("cells on the command line", { concurrency: 3 }, () => {
  test("T10: work hands a command the tokens of what its task has on a cell, in a file that is gone afterwards", async () => {
    const config = configOf("lab-7", [web("GPU:/jobs/a")]);
    const cell = start(["cell", "--server", server.url, "--config", config]);
    await until(() => (cell.output.stdout.includes("1 of 1 resources are ready") ? true : null), "it is linked");
    const intent = { predicate: "MUTATES", resource: "GPU:/jobs/*", pick: "any" };
    const task = { task_type: "bound", principal_ai: "cli", intents: [intent] };
    const created = await fetch(`${server.url}/v1/tasks`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(task),
    });
    const { task_id: id } = (await created.json()) as { task_id: string };
    const script =
      'const [l] = JSON.parse(require("fs").readFileSync(process.env.LEASEHOLD_LEASES));' +
      "fetch(l.coordinate, { headers: { authorization: `Bearer ${l.token}` } }).then((r) => r.text())" +
      ".then((text) => console.log(l.resource, text, process.env.LEASEHOLD_LEASES));";
    await server.line(["work", "--type", "bound", "--count", "1", "--", process.execPath, "-e", script]);
    const { result } = await server.json<{ result: { outcome_text: string } }>(["tasks", "show", id]);
    const [resource, text, path = ""] = result.outcome_text.split(" ");
    assert.deepEqual([resource, text, existsSync(path)], ["GPU:/jobs/a", "served", false]);
    cell.child.kill("SIGTERM");
    assert.equal((await cell.ended).code, 0, cell.output.stderr);
  });

  test("a cell runs, is listed with its resources, withdrawn, readmitted, and GONE after it was stopped", async () => {
    const config = configOf("lab-9", [{ ...web("GPU:/cli/a"), capacity: 4, hardware: ["a100"] }, web("GPU:/cli/b")]);
    const cell = start(["cell", "--server", server.url, "--config", config]);
    await until(() => (cell.output.stdout.includes("2 of 2 resources are ready") ? true : null), "it is linked");
    const { cells } = await server.json<{ cells: CellView[] }>(["cells"]);
    const found = cells.find((one) => one.cell === "lab-9");
    assertFits(shapes.cellView, found);
    assert.deepEqual([found?.state, found?.resources.length], ["READY", 2]);
    const shown = await server.json<CellView>(["cells", "lab-9"]);
    assert.deepEqual(
      shown.resources.map(({ resource, driver, capacity }) => [resource, driver, capacity]),
      [
        ["GPU:/cli/a", "http", 4],
        ["GPU:/cli/b", "http", null],
      ],
    );
    assert.match((await server.line(["cells"])).stdout, /^lab-9\tREADY\t\S+\t2\/2 ready\t0\t0\.1\.0\t$/m);
    assert.match((await server.line(["cells", "lab-9"])).stdout, /^GPU:\/cli\/a\thttp\tREADY\t4\t0\ta100\t$/m);
    const watching = server.begin(["cells", "--watch", "--json", "--interval", "100ms"]);
    await until(() => (watching.output.stdout === "" ? null : true), "it shows them");
    assert.equal((await server.json<CellView>(["cells", "withdraw", "lab-9"])).withdrawn, true);
    assert.equal((await server.line(["acquire", "-n", "GPU:/cli/b"])).code, 107);
    await until(() => (watching.output.stdout.includes('"withdrawn":true') ? true : null), "it shows the change");
    watching.child.kill("SIGINT");
    assert.equal((await watching.ended).code, 0);
    assert.equal((await server.json<CellView>(["cells", "readmit", "lab-9"])).withdrawn, false);
    cell.child.kill("SIGTERM");
    assert.equal((await cell.ended).code, 0, cell.output.stderr);
    assert.equal((await server.json<CellView>(["cells", "lab-9"])).state, "GONE");
    assertOneLine(await server.line(["cells", "no-such"]), "no such cell");
    assertOneLine(await server.line(["cells", "withdraw", "no-such"]), "no such cell");
  });

  test("a fenced resource is listed with its reason, and reset through its cell", async () => {
    const options = { bind: ["echo", "x"], teardown: ["false"], reset: ["true"], probe: ["true"] };
    const cell = start([
      "cell",
      "--url",
      server.url,
      "--config",
      configOf("vm", [{ resource: "VM:/f", driver: "exec", options }]),
    ]);
    await until(() => (cell.output.stdout.includes("is linked") ? true : null), "it is linked");
    await server.json(["acquire", "VM:/f", "--agent", "vera", "--wait", "20s"]);
    await server.json(["release", "--all", "--agent", "vera"]);
    const fenced = await until(async () => {
      const { resources } = await server.json<{ resources: Resource[] }>(["resources", "--fenced"]);
      return resources.find(({ resource }) => resource === "VM:/f") ?? null;
    }, "it is fenced");
    assert.match(fenced.reason ?? "", /teardown/);
    assert.equal((await server.json<Resource>(["resources", "reset", "VM:/f"])).state, "READY");
    assertOneLine(await server.line(["resources", "--fenced", "--state", "READY"]), "two states");
    cell.child.kill("SIGTERM");
    await cell.ended;
  });

  test("--check needs no server: 0 if the configuration is right, 7 with a line for each fault, 2 if it cannot be read", async () => {
    const check = (file: string) => start(["cell", "--config", file, "--check"]).ended;
    assert.equal((await check(configOf("good", [web("GPU:/a")]))).code, 0);
    assert.equal((await check("examples/cell/cell.json")).code, 0);
    const bad = await check(configOf("bad", [web("GPU:/a"), { resource: "gpu", driver: "http" }, { driver: "warp" }]));
    assert.equal(bad.code, 7);
    for (const line of bad.stderr.trim().split("\n")) assert.match(line, /^leasehold: resources\[[12]\]/);
    const broken = join(folder.path, "broken.json");
    writeFileSync(broken, "{");
    mkdirSync(join(folder.path, "folder"), { recursive: true });
    for (const file of [broken, join(folder.path, "none.json"), join(folder.path, "folder")]) {
      const ended = await check(file);
      assert.equal(ended.code, 2, file);
      assertOneLine(ended, file);
    }
    assertOneLine(await start(["cell"]).ended, "no configuration");
  });

  test("a key that is refused ends a cell with one line and code 2", async () => {
    const config = configOf("keyed", [web("GPU:/k")]);
    const ended = await start(["cell", "--server", server.url, "--config", config], {
      env: { LEASEHOLD_KEY: "lhk_wrong" },
    }).ended;
    assert.equal(ended.code, 2);
    assertOneLine(ended, "wrong key");
    assert.doesNotMatch(ended.stderr, /lhk_wrong/);
  });

  test("a token is decoded and narrowed offline, from an argument or standard input, and its secret is not shown", async () => {
    const given = token();
    const seen = await start(["token", "inspect", "--json"], { input: `${given}\n` }).ended;
    const {
      lease_id: lease,
      fence,
      caveats,
    } = JSON.parse(seen.stdout) as { lease_id: string; fence: number; caveats: unknown[] };
    assert.deepEqual([lease, fence, caveats], ["lse_1", 41, []]);
    const line = [
      "token",
      "narrow",
      given,
      "--operations",
      "write,read",
      "--path",
      "/reports",
      "--for",
      "10s",
      "--bytes",
      "1000",
    ];
    const narrowed = (await start(line).ended).stdout.trim();
    assert.match(narrowed, /^lht1\./);
    const { stdout } = await start(["token", "inspect", "-"], { input: narrowed }).ended;
    assert.match(stdout, /^only {8}read, write\nonly {8}\/reports and below\nonly {8}until \S+Z\nonly {8}1000 bytes$/m);
    assert.ok(!stdout.includes(given.slice(-20)) && !stdout.includes(narrowed.slice(-20)));
    for (const [args, code] of [
      [["token", "inspect", "secret-of-mine"], 2],
      [["token", "inspect", `${given.slice(0, -4)}AAAA`.slice(0, 30)], 7],
      [["token", "narrow", given], 2],
      [["token", "narrow", given, "--path", "../up"], 2],
      [["token", "narrow", given, "--until", "tomorrow"], 2],
    ] as const) {
      const ended = await start(args).ended;
      assert.equal(ended.code, code, args.join(" "));
      assertOneLine(ended, args.join(" "));
      assert.doesNotMatch(ended.stderr, /secret-of-mine|lht1\.\w/);
    }
  });

  test("the server verifies a token, and rotates the keys", async () => {
    const config = configOf("verify", [web("GPU:/v")]);
    const cell = start(["cell", "--server", server.url, "--config", config]);
    await until(() => (cell.output.stdout.includes("is linked") ? true : null), "it is linked");
    const { leases } = await server.json<{ leases: { token: string }[] }>([
      "acquire",
      "GPU:/v",
      "--agent",
      "vic",
      "--wait",
      "20s",
    ]);
    const given = leases[0]?.token ?? "";
    assert.match((await server.line(["token", "verify"], { input: given })).stdout, /^good: MUTATES GPU:\/v of vic /);
    const rotated = await server.json<{ keys: { retires_at: string | null }[] }>(["token", "rotate", "--yes"]);
    assert.equal(rotated.keys.filter(({ retires_at: at }) => at === null).length, 1);
    assert.equal((await server.line(["token", "verify", given])).code, 0, "older ones stay good for a while");
    await server.json(["release", "--all", "--agent", "vic"]);
    for (const bad of [given, token()]) {
      const ended = await server.line(["token", "verify", bad]);
      assert.equal(ended.code, 7);
      assertOneLine(ended, "a token that is not good");
    }
    cell.child.kill("SIGTERM");
    await cell.ended;
  });
});
