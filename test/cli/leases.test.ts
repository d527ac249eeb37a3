import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import * as shapes from "../../src/protocol/leases/shapes.ts";
import type { Lease, OpenRequest } from "../../src/sdk/wire.ts";
import { assertFits, type Folder, makeFolder, type Server, startServer, until } from "./harness.ts";

interface Granted {
  readonly verdict: string;
  readonly leases: readonly Lease[];
  readonly agent_id: string;
  readonly agent_token?: string;
  readonly request_id?: string;
  readonly claim_within_ms?: number;
}

let server: Server;
let folder: Folder;

before(async () => {
  server = await startServer();
  folder = makeFolder();
  mkdirSync(join(folder.path, "shop/src"), { recursive: true });
  writeFileSync(join(folder.path, "shop/.leasehold.json"), JSON.stringify({ repository: "shop" }));
});
after(async () => {
  await server.stop();
  folder.remove();
});

function assertLeases(leases: readonly unknown[], count: number): void {
  assert.equal(leases.length, count);
  for (const lease of leases) assertFits(shapes.lease, lease);
}

describe("leases", { concurrency: 3 }, () => {
  test("acquire leases a manifest of paths and names together", async () => {
    const line = [
      "acquire",
      "auth.ts",
      "-s",
      "../docs/",
      "X:/typed",
      "-p",
      "RENAMES",
      "a.ts",
      "--to",
      "b.ts",
      "--purpose",
      "why",
    ];
    const granted = await server.json<Granted>(line, { cwd: join(folder.path, "shop/src") });
    assert.equal(granted.verdict, "GRANTED");
    assertLeases(granted.leases, 5);
    assert.deepEqual(
      granted.leases.map(({ predicate, resource }) => `${predicate} ${resource}`),
      [
        "MUTATES FILE:/shop/src/auth.ts",
        "CONSUMES FILE:/shop/docs/**",
        "CONSUMES X:/typed",
        "RENAMES FILE:/shop/src/a.ts",
        "RENAMES FILE:/shop/src/b.ts",
      ],
    );
    assert.equal(granted.leases[0]?.purpose, "why");
    assert.match(granted.agent_token ?? "", /^lha2\./, "a new agent's token is shown");
  });

  test("in a pipe a lease is a tab-separated line without decoration", async () => {
    const { stdout, stderr } = await server.line(["acquire", "X:/tabs", "--ttl", "5m"]);
    assert.match(stdout, /^X:\/tabs\tMUTATES\tagt_\w+\tACTIVE\t\d+\t5m00s\tlse_\w+\t\n$/);
    assert.equal(stderr, "");
  });

  test("--dry-run prints the verdict and changes nothing", async () => {
    await server.json(["agents", "register", "elder"]);
    assert.equal((await server.json<Granted>(["acquire", "X:/dry", "--dry-run"])).verdict, "GRANTED");
    await server.json(["acquire", "X:/dry", "--agent", "dry-holder"]);
    const waits = await server.line(["acquire", "X:/dry", "--dry-run", "--agent", "elder", "--json"]);
    assert.deepEqual([waits.code, (JSON.parse(waits.stdout) as Granted).verdict], [107, "WAIT"]);
    const dies = await server.line(["acquire", "X:/dry", "--dry-run", "--json"]);
    assert.deepEqual([dies.code, (JSON.parse(dies.stdout) as Granted).verdict], [107, "DIE"]);
    assert.equal((await server.json<{ leases: [] }>(["ls", "X:/dry"])).leases.length, 1);
  });

  test("renew, verify, transfer and release: each answers with leases, and verify with 7 once one is gone", async () => {
    const { leases } = await server.json<Granted>(["acquire", "X:/life", "--agent", "a"]);
    const id = leases[0]?.id ?? "";
    const fence = String(leases[0]?.fence);
    assertLeases((await server.json<{ leases: Lease[] }>(["renew", id])).leases, 1);
    assert.equal((await server.line(["verify", id, "--fence", fence])).code, 0);
    const anew = await server.json<{ leases: Lease[] }>(["renew", id, "--reissue"]);
    assert.equal(anew.leases[0]?.generation, 2);
    const stale = await server.line(["verify", id, "--fence", fence]);
    assert.equal(stale.code, 7);
    assert.match(stale.stderr, /^leasehold: the lease has the fence \d+, not \d+[^\n]+\n$/);
    await server.json(["agents", "register", "b"]);
    const moved = await server.json<Lease>(["transfer", id, "b"]);
    assertLeases([moved], 1);
    assert.equal(moved.agent_id, "b");
    const verified = await server.json<{ valid: boolean; leases: Lease[] }>(["verify", "--agent", "b"]);
    assert.deepEqual([verified.valid, verified.leases.length], [true, 1]);
    assert.deepEqual(await server.json(["release", id, "--report", "sha256:1"]), {
      leases: [{ id, state: "RELEASED" }],
    });
    assert.deepEqual(await server.json(["release", id]), { leases: [{ id, state: "RELEASED" }] });
    const gone = await server.line(["verify", id, "lse_never", "--json"]);
    assert.equal(gone.code, 7);
    const { valid, leases: states } = JSON.parse(gone.stdout) as { valid: boolean; leases: Lease[] };
    assert.deepEqual([valid, states.map(({ state }) => state)], [false, ["RELEASED", "UNKNOWN"]]);
    assert.equal((await server.line(["renew", id])).code, 1, "what has ended is not extended");
  });

  test("--all applies to all leases of the agent", async () => {
    await server.json(["acquire", "X:/all/1", "X:/all/2", "--agent", "many"]);
    assertLeases((await server.json<{ leases: Lease[] }>(["renew", "--all", "--agent", "many"])).leases, 2);
    assert.equal(
      (await server.json<{ leases: [] }>(["release", "--all"], { env: { LEASEHOLD_AGENT_ID: "many" } })).leases.length,
      2,
    );
  });

  test("W8: acquire collects the grant that ended its wait before it prints it", async () => {
    await server.json(["agents", "register", "patient"]);
    const held = await server.json<Granted>(["acquire", "X:/collected", "--agent", "brief"]);
    const waiting = server.begin(["acquire", "X:/collected", "--agent", "patient", "-w", "60s", "--json"]);
    await until(async () => {
      const { waiters } = await server.json<{ waiters: OpenRequest[] }>(["ls", "X:/collected"]);
      return waiters.length > 0 ? true : null;
    }, "it waits");
    await server.json(["release", held.leases[0]?.id ?? ""]);
    const granted = JSON.parse((await waiting.ended).stdout) as Granted;
    assert.deepEqual([granted.verdict, granted.claim_within_ms], ["GRANTED", undefined]);
    const looked = await fetch(`${server.url}/v1/requests/${granted.request_id}?collect=false`);
    assert.equal("claim_within_ms" in ((await looked.json()) as Granted), false);
  });

  test("ls shows leases and their waiters, and each filter narrows it", async () => {
    await server.json(["agents", "register", "older"]);
    await server.json(["acquire", "X:/ls/a", "--agent", "younger", "--purpose", "edit"]);
    const waiting = server.begin(["acquire", "X:/ls/**", "--agent", "older", "-w", "60s"]);
    const { waiters } = await until(async () => {
      const listed = await server.json<{ leases: Lease[]; waiters: OpenRequest[] }>(["ls", "X:/ls/**"]);
      return listed.waiters.length > 0 ? listed : null;
    }, "it waits");
    assertFits(shapes.openRequest, waiters[0]);
    assert.equal(waiters[0]?.blocked_by[0]?.agent_id, "younger");
    assert.deepEqual((await server.json<{ leases: [] }>(["ls", "--waiters"])).leases, []);
    const own = await server.json<{ leases: Lease[]; has_more: boolean }>(["ls", "--agent", "younger", "--limit", "1"]);
    assert.deepEqual([own.leases.length, own.has_more], [1, false]);
    const line = await server.line(["ls", "X:/ls/**"]);
    assert.match(
      line.stdout,
      /^X:\/ls\/a\tMUTATES\tyounger\tACTIVE\t\d+\t[\d.]+s\tlse_\w+\tedit\nMUTATES X:\/ls\/\*\*\tolder\t1\t.*\treq_\w+\n/,
    );
    assert.deepEqual(await server.json(["revoke", "--agent", "younger", "--reason", "enough"]), { revoked: 1 });
    assert.equal((await waiting.ended).code, 0, "its turn came");
    const ended = await server.json<{ leases: Lease[] }>(["ls", "X:/ls/a", "--state", "REVOKED"]);
    assert.equal(ended.leases[0]?.state, "REVOKED");
  });

  test("revoke takes one lease, or all under a prefix", async () => {
    const { leases } = await server.json<Granted>(["acquire", "X:/rv/1", "X:/rv/2", "X:/rv/3"]);
    assert.deepEqual(await server.json(["revoke", leases[0]?.id ?? ""]), { revoked: 1 });
    assert.deepEqual(await server.json(["revoke", "--prefix", "X:/rv"]), { revoked: 2 });
    assert.equal((await server.line(["revoke", "lse_never"])).code, 1);
  });

  test("control characters in another's purpose do not reach the terminal", async () => {
    await server.json(["acquire", "X:/evil", "--purpose", "\u001b[2Jgone\u202e"]);
    const { stdout } = await server.line(["ls", "X:/evil"]);
    assert.ok(!stdout.includes("\u001b") && !stdout.includes("\u202e"), JSON.stringify(stdout));
  });
});
