import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as askHttp, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { narrow } from "../../src/token/index.ts";
import { ask, type BoundLease, serveHttp, serveTcp, startPlane, until } from "./harness.ts";

function narrowed(token: string, ...caveats: Parameters<typeof narrow>[1]): string {
  const result = narrow(token, caveats);
  assert(typeof result === "string");
  return result;
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};

describe("leases on real resources", { concurrency: 2 }, () => {
  test("http: a lease is granted, used, narrowed, renewed and released; the next holder needs its own token", async (t) => {
    const plane = await startPlane(t);
    let finish: (() => void) | null = null;
    const service = await serveHttp(t, (request, response) => {
      if (request.url === "/slow") {
        response.write("begun ");
        finish = () => void response.end("and ended");
      } else response.end(`${request.method} ${request.headers["leasehold-fence"]}`);
    });
    await plane.cell("web", [{ resource: "API:/a", driver: "http", options: { target: `http://${service}` } }]);
    const lease = await plane.grantBound("ann", "API:/a");
    assert.equal((await ask(lease.coordinate, lease.token)).text, `GET ${lease.fence}`);
    const reading = narrowed(
      lease.token,
      { type: "operations", operations: ["read"] },
      { type: "path", path: "/docs" },
    );
    assert.equal((await ask(`${lease.coordinate}/docs/a`, reading)).status, 200);
    assert.equal((await ask(`${lease.coordinate}/docs/a`, reading, { method: "POST" })).error, "caveat_failed");
    assert.equal((await ask(`${lease.coordinate}/other`, reading)).error, "caveat_failed");
    const slow = ask(`${lease.coordinate}/slow`, lease.token);
    const end = await until<() => void>(() => finish, "the slow one is under way");
    const renewal = await plane.post<BoundLease>(`/v1/leases/${lease.id}/renew`);
    assert.equal(renewal.status, 200, renewal.text);
    assert.equal(renewal.body.generation, lease.generation + 1);
    assert.equal((await ask(lease.coordinate, lease.token)).error, "stale_token");
    assert.equal((await ask(lease.coordinate, renewal.body.token)).text, `GET ${renewal.body.fence}`);
    end();
    assert.equal((await slow).text, "begun and ended", "G8: what is open stays open");
    assert.equal((await plane.post(`/v1/leases/${lease.id}/release`)).status, 200);
    const next = await plane.grantBound("ben", "API:/a");
    assert.ok(next.fence > renewal.body.fence);
    assert.equal((await ask(lease.coordinate, renewal.body.token)).status, 410);
    assert.equal((await ask(next.coordinate, next.token)).status, 200);
  });

  test("G8: a heartbeat on a bound lease is refused with renew_required", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end());
    await plane.cell("web", [{ resource: "API:/a", driver: "http", options: { target: `http://${service}` } }]);
    const lease = await plane.grantBound("ann", "API:/a");
    const { status, body } = await plane.post(`/v1/leases/${lease.id}/heartbeat`);
    assert.deepEqual([status, body.error], [409, "renew_required"]);
  });

  test("tcp: a lease that expires during a transfer cuts it, and the next holder gets through", async (t) => {
    const plane = await startPlane(t);
    let arrived = 0;
    let open = 0;
    const service = await serveTcp(t, (socket) => {
      open++;
      socket.on("close", () => open--);
      socket.on("data", (chunk) => {
        arrived += chunk.length;
        socket.write(chunk);
      });
    });
    await plane.cell("db", [{ resource: "DB:/a", driver: "tcp", options: { target: service } }]);
    const lease = await plane.grantBound("ann", "DB:/a", { ttl_ms: 3_000 });
    const { port } = new URL(lease.coordinate);
    const socket = connect(Number(port), "127.0.0.1");
    socket.on("error", () => {});
    socket.write(`${lease.token}\n`);
    const sending = setInterval(() => socket.write("x".repeat(1_000)), 2);
    t.after(() => clearInterval(sending));
    await new Promise((resolve) => socket.on("close", resolve));
    assert.ok(arrived > 0);
    const late = connect(Number(port), "127.0.0.1");
    late.write(`${lease.token}\nmore`);
    const [line] = (await once(late, "data")) as [Buffer];
    assert.equal((JSON.parse(String(line)) as { error: string }).error, "lease_expired");
    await until(() => (open === 0 ? true : null), "all that came through before has arrived");
    const before = arrived;
    const next = await plane.grantBound("ben", "DB:/a");
    const second = connect(Number(port), "127.0.0.1");
    second.write(`${next.token}\nhello`);
    await until(() => (arrived === before + 5 ? true : null), "the successor's bytes, and no others");
    second.destroy();
  });

  test("process: a revocation ends the holder's process before another holder may run one", async (t) => {
    const plane = await startPlane(t);
    const options = { command: ["/bin/sh", "-c", "sleep 1000 & echo $! > pid; wait"], grace_ms: 100 };
    await plane.cell("box", [{ resource: "BOX:/a", driver: "process", options }]);
    await plane.grantBound("ann", "BOX:/a");
    const pidFile = join(plane.folder, "pid");
    const pid = await until(() => Number(existsSync(pidFile) && readFileSync(pidFile, "utf8")) || null, "it runs");
    assert.ok(isAlive(pid));
    const waiting = plane.acquire("older", "BOX:/a", { dry_run: true });
    assert.notEqual((await waiting).body.verdict, "GRANTED");
    const { body } = await plane.post<{ revoked: number }>("/v1/revoke", {
      resource_prefix: "BOX:/",
      reason: "enough",
    });
    assert.equal(body.revoked, 1);
    const next = await until(async () => {
      const { status, body: answer } = await plane.acquire("ben", "BOX:/a", { wait_timeout_ms: 0 });
      return status === 200 ? (answer.leases?.[0] ?? null) : null;
    }, "the next one gets it");
    assert.equal(isAlive(pid), false, "G6: free means gone");
    assert.equal(next.state, "ACTIVE");
  });

  test("G7: a teardown that fails fences the resource until a probe has seen it clean", async (t) => {
    const plane = await startPlane(t);
    const mark = join(plane.folder, "dirty");
    const options = {
      bind: ["/bin/sh", "-c", `touch ${mark}; echo here`],
      teardown: ["/bin/sh", "-c", "echo the disk is stuck >&2; exit 1"],
      reset: ["/bin/true"],
      probe: ["/bin/sh", "-c", `test ! -e ${mark}`],
    };
    const service = await serveHttp(t, (_request, response) => void response.end());
    await plane.cell("vm", [
      { resource: "VM:/a", driver: "exec", options },
      { resource: "API:/a", driver: "http", options: { target: `http://${service}` } },
    ]);
    const lease = await plane.grantBound("ann", "VM:/a");
    await plane.post(`/v1/leases/${lease.id}/release`);
    await until(async () => ((await plane.resource("VM:/a")).state === "FENCED" ? true : null), "it is fenced");
    const refused = await plane.acquire("ben", "VM:/a");
    assert.deepEqual([refused.status, refused.body.reason], [423, "resource_fenced"]);
    const unclean = await plane.post("/v1/resources/reset", { resource: "VM:/a" });
    assert.deepEqual([unclean.status, unclean.body.error], [409, "reset_failed"], unclean.text);
    await plane.grantBound("cat", "API:/a");
    rmSync(mark);
    const reset = await plane.post("/v1/resources/reset", { resource: "VM:/a" });
    assert.equal(reset.status, 200, reset.text);
    await plane.grantBound("ben", "VM:/a");
  });

  test("one bind that fails undoes the whole manifest, with its reason", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end());
    await plane.cell("mixed", [
      { resource: "VM:/bad", driver: "exec", options: { bind: ["/bin/false"], teardown: ["/bin/true"] } },
      { resource: "API:/a", driver: "http", options: { target: `http://${service}` } },
    ]);
    const intents = ["API:/a", "VM:/bad"].map((resource) => ({ predicate: "MUTATES", resource }));
    const refused = await plane.acquire("ann", "API:/a", { intents });
    assert.deepEqual([refused.status, refused.body.error, refused.body.reason], [403, "lease_denied", "bind_failed"]);
    await plane.grantBound("ben", "API:/a");
  });

  test("G12: a cell that is withdrawn takes nothing new and can be readmitted", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end("served"));
    await plane.cell("web", [{ resource: "API:/a", driver: "http", options: { target: `http://${service}` } }]);
    const lease = await plane.grantBound("ann", "API:/a");
    assert.equal((await plane.post("/v1/resources/withdraw", { cell: "web" })).status, 200);
    assert.equal((await ask(lease.coordinate, lease.token)).text, "served", "the live one runs out");
    await plane.post(`/v1/leases/${lease.id}/release`);
    const refused = await plane.acquire("ben", "API:/a");
    assert.equal(refused.status, 423, refused.text);
    assert.equal((await plane.post("/v1/cells/web/readmit")).status, 200);
    await plane.grantBound("ben", "API:/a");
  });

  test("a cell that is stopped ends its leases, and none of its resources is fenced", async (t) => {
    const plane = await startPlane(t);
    const options = { command: ["/bin/sh", "-c", "sleep 1000"], grace_ms: 100 };
    const cell = await plane.cell("box", [{ resource: "BOX:/a", driver: "process", options }]);
    const lease = await plane.grantBound("ann", "BOX:/a");
    await cell.kill("SIGTERM");
    assert.equal(cell.child.exitCode, 0, cell.output.stderr);
    const { body } = await plane.get(`/v1/leases/${lease.id}`);
    assert.equal(body.state, "REVOKED");
    assert.notEqual((await plane.resource("BOX:/a")).state, "FENCED");
    const refused = await plane.acquire("ben", "BOX:/a", { hold_ms: 0 });
    assert.deepEqual([refused.status, refused.body.reason], [423, "cell_not_ready"], refused.text);
    await plane.cell("box", [{ resource: "BOX:/a", driver: "process", options }]);
    await plane.grantBound("ben", "BOX:/a");
  });

  test("pick: any matching resource with free units is granted", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end());
    const gpu = (name: string) => ({ resource: name, driver: "http", options: { target: `http://${service}` } });
    await plane.cell("lab-1", [gpu("GPU:/lab/1")]);
    await plane.cell("lab-2", [gpu("GPU:/lab/2")]);
    const intents = [{ predicate: "MUTATES", resource: "GPU:/lab/*", pick: "any" }];
    const first = await plane.grantBound("ann", "", { intents });
    const second = await plane.grantBound("ben", "", { intents });
    assert.deepEqual([first.resource, second.resource].toSorted(), ["GPU:/lab/1", "GPU:/lab/2"]);
  });

  test("a response in progress is reset when its lease is released, and never looks complete", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => {
      const timer = setInterval(() => response.write("x".repeat(1_000)), 5);
      response.on("close", () => clearInterval(timer));
    });
    await plane.cell("web", [{ resource: "API:/a", driver: "http", options: { target: `http://${service}` } }]);
    const lease = await plane.grantBound("ann", "API:/a");
    const request = askHttp(lease.coordinate, { headers: { authorization: `Bearer ${lease.token}` } });
    request.on("error", () => {});
    request.end();
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    const ended = new Promise<string>((resolve) => {
      answer.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
      answer.on("end", () => resolve("end"));
    });
    await once(answer, "data");
    answer.resume();
    await plane.post(`/v1/leases/${lease.id}/release`);
    assert.equal(await ended, "ECONNRESET");
  });
});

test("faults of a configuration are one line each, and the cell goes on with the rest", async (t) => {
  const plane = await startPlane(t);
  const service = await serveHttp(t, (_request, response) => void response.end());
  writeFileSync(join(plane.folder, "taken"), "");
  const cell = await plane.cell("mixed", [
    { resource: "API:/a", driver: "http", options: { target: `http://${service}` } },
    { resource: "API:/b", driver: "teleport" },
    { resource: "API:/c", driver: "http", options: { target: "nowhere" } },
    { resource: "API:/d", driver: "http", options: { target: `http://${service}`, listen: `127.0.0.1:${plane.port}` } },
    { resource: "FILE:/e", driver: "files", options: { folder: "missing" } },
  ]);
  const lines = await until(() => {
    const found = cell.output.stderr.trim().split("\n");
    return found.length >= 4 ? found : null;
  }, "each fault is reported");
  assert.equal(lines.length, 4, cell.output.stderr);
  for (const line of lines) assert.match(line, /^leasehold: /);
  await plane.grantBound("ann", "API:/a");
  const refused = await plane.acquire("ben", "API:/d");
  assert.deepEqual([refused.status, refused.body.reason], [423, "cell_not_ready"]);
});

test("with keys: a cell's key enrols its cell and does nothing else, and no other key can use the cell's name", async (t) => {
  const plane = await startPlane(t);
  const service = await serveHttp(t, (_request, response) => void response.end("served"));
  const make = async (role: string, key?: string): Promise<string> => {
    const { status, body, text } = await plane.post<{ key: string }>(
      "/v1/keys",
      { role, tenant_id: "default" },
      { key },
    );
    assert.equal(status, 201, text);
    return body.key;
  };
  const operator = await make("operator");
  const [own, other] = [await make("cell", operator), await make("cell", operator)];
  const resources = [{ resource: "API:/a", driver: "http", options: { target: `http://${service}` } }];
  await plane.cell("web", resources, { env: { LEASEHOLD_KEY: own } });
  assert.equal((await plane.get("/v1/leases", { key: own })).status, 403);
  const ended = async (env: Readonly<Record<string, string>>): Promise<[number | null, string]> => {
    const cell = plane.begin("web", resources, { env, settings: { state_file: "other.json" } });
    await cell.exited;
    return [cell.child.exitCode, cell.output.stderr];
  };
  const [taken, line] = await ended({ LEASEHOLD_KEY: other });
  assert.deepEqual([taken, line.trim().split("\n").length], [2, 1], line);
  assert.match(line, /cell_taken/);
  assert.equal((await ended({}))[0], 2, "no key at all");
  const { body } = await plane.get<{ cells: { state: string; connected: boolean }[] }>("/v1/cells", { key: operator });
  assert.deepEqual(
    body.cells.map(({ state, connected }) => [state, connected]),
    [["READY", true]],
  );
});
