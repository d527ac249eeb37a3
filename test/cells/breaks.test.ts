import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { readProcess } from "../../src/cell/processes.ts";
import { openWire } from "../../torture/cut.ts";
import { ask, type BoundLease, type Plane, serveHttp, startPlane, until } from "./harness.ts";

const web = (service: string, more: object = {}) => [
  { resource: "API:/a", driver: "http", options: { target: `http://${service}`, ...more } },
];

/** Notified, or cut off: a gateway resets the connections that it has when the lease ends. */
const isRefused = (status: number): boolean => status === 410 || status === 0;

const isOver = ({ expires_at: at }: BoundLease): boolean => Date.now() > Date.parse(at);

/** Tries to acquire the resource all the time; counts the grants. */
function contend(plane: Plane, resource: string) {
  let stopped = false;
  const granted: string[] = [];
  const run = async (): Promise<void> => {
    while (!stopped) {
      const { status, body } = await plane.acquire("rival", resource, { wait_timeout_ms: 0, hold_ms: 0 }).catch(() => ({
        status: 0,
        body: { leases: [] },
      }));
      const [lease] = body.leases ?? [];
      if (status === 200 && lease !== undefined) granted.push(lease.id);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const running = run();
  return {
    granted,
    async stop() {
      stopped = true;
      await running;
    },
  };
}

describe("faults", { concurrency: 3 }, () => {
  test("when a cell is killed access ends, and its resource is free only when the cell is back", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end("served"));
    const cell = await plane.cell("web", web(service));
    const lease = await plane.grantBound("ann", "API:/a");
    await cell.kill();
    assert.equal((await ask(lease.coordinate, lease.token)).status, 0);
    const rival = await plane.acquire("rival", "API:/a", { wait_timeout_ms: 0, hold_ms: 0 });
    assert.notEqual(rival.status, 200);
    await plane.cell("web", web(service));
    await until(
      async () => ((await plane.get(`/v1/leases/${lease.id}`)).body.state === "REVOKED" ? true : null),
      "revoked",
    );
    const next = await plane.grantBound("ben", "API:/a");
    assert.equal((await ask(next.coordinate, next.token)).text, "served");
    assert.equal((await ask(next.coordinate, lease.token)).status, 410);
  });

  test("processes of a killed cell are gone before its resource is granted again", async (t) => {
    const plane = await startPlane(t);
    const options = { command: ["/bin/sh", "-c", "echo $$ > pid; sleep 1000"], grace_ms: 100 };
    const resources = [{ resource: "BOX:/a", driver: "process", options }];
    const cell = await plane.cell("box", resources);
    await plane.grantBound("ann", "BOX:/a");
    const file = join(plane.folder, "pid");
    const pid = await until(() => Number(existsSync(file) && readFileSync(file, "utf8")) || null, "it runs");
    await cell.kill();
    await plane.cell("box", resources);
    await plane.grantBound("ben", "BOX:/a");
    assert.equal(readProcess(pid), null);
  });

  test("a cell that is stopped over a lease's end: no access, no other holder, a fence; and it can be reset", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end("served"));
    const cell = await plane.cell("web", web(service));
    const lease = await plane.grantBound("ann", "API:/a", { ttl_ms: 3_000 });
    await cell.stop();
    const contest = contend(plane, "API:/a");
    const late = ask(lease.coordinate, lease.token);
    await until(
      async () => ((await plane.resource("API:/a")).state === "FENCED" ? true : null),
      "it is fenced",
      30_000,
    );
    cell.goOn();
    assert.equal((await late).status, 410);
    await contest.stop();
    assert.deepEqual(contest.granted, []);
    const reset = await until(
      async () => {
        const answer = await plane.post("/v1/resources/reset", { resource: "API:/a" });
        return answer.status === 423 ? null : answer;
      },
      "the cell is back",
      30_000,
    );
    assert.equal(reset.status, 200, reset.text);
    await plane.grantBound("ben", "API:/a");
  });

  test("G11: a cell that is cut off ends a lease by its own clock, and its resource is free once the cell has reported", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end("served"));
    const wire = await openWire(plane.port);
    t.after(() => wire.close());
    const cell = await plane.cell("web", web(service), { url: wire.url });
    const lease = await plane.grantBound("ann", "API:/a", { ttl_ms: 4_000 });
    wire.cut();
    assert.equal((await ask(lease.coordinate, lease.token)).text, "served", "it goes on meanwhile");
    const contest = contend(plane, "API:/a");
    await until(async () => {
      const over = isOver(lease);
      const { status } = await ask(lease.coordinate, lease.token);
      if (over) assert.ok(isRefused(status), `${status}, but not a moment longer`);
      return status === 410 ? true : null;
    }, "the cell ends it");
    await contest.stop();
    assert.deepEqual(contest.granted, [], "nobody has confirmed its end");
    wire.mend();
    await cell.linked(2);
    const { state } = await plane.resource("API:/a");
    if (state === "FENCED") await plane.post("/v1/resources/reset", { resource: "API:/a" });
    await plane.grantBound("ben", "API:/a");
  });

  test("a restarted server finds its cells again, and leases last until their expiry", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end("served"));
    const cell = await plane.cell("web", web(service));
    const lease = await plane.grantBound("ann", "API:/a");
    await plane.kill();
    assert.equal((await ask(lease.coordinate, lease.token)).text, "served");
    await plane.start();
    await cell.linked(2);
    const renewal = await plane.post<BoundLease>(`/v1/leases/${lease.id}/renew`);
    assert.equal(renewal.status, 200, renewal.text);
    assert.equal((await ask(lease.coordinate, lease.token)).error, "stale_token");
    assert.equal((await ask(lease.coordinate, renewal.body.token)).text, "served");
  });

  test("a lease that expires while the server is down ends at its cell, and its resource is free once both agree", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end("served"));
    const cell = await plane.cell("web", web(service));
    const lease = await plane.grantBound("ann", "API:/a", { ttl_ms: 2_000 });
    await plane.kill();
    await until(async () => {
      const over = isOver(lease);
      const { status } = await ask(lease.coordinate, lease.token);
      if (over) assert.ok(isRefused(status), `${status}`);
      return over && status === 410 ? true : null;
    }, "it ends");
    await plane.start();
    await cell.linked(2);
    await plane.grantBound("ben", "API:/a");
  });

  test("a request for a cell that is GONE is PAUSED: neither granted nor an endless wait", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end("served"));
    const cell = await plane.cell("web", web(service));
    await cell.kill();
    const refused = await until(
      async () => {
        const answer = await plane.acquire("ann", "API:/a", { wait_timeout_ms: 0, hold_ms: 0 });
        assert.notEqual(answer.status, 200);
        return answer.body.reason === "cell_not_ready" ? answer : null;
      },
      "it is notified",
      40_000,
    );
    assert.equal(refused.status, 423);
  });

  test("a newer process of the same cell replaces the older, which tears down and exits", async (t) => {
    const plane = await startPlane(t);
    const service = await serveHttp(t, (_request, response) => void response.end("served"));
    const older = await plane.cell("web", web(service));
    const lease = await plane.grantBound("ann", "API:/a");
    await plane.cell("web", web(service), { settings: { state_file: "newer.json" } });
    await older.exited;
    assert.equal(older.child.exitCode, 1);
    assert.match(older.output.stderr, /another process has taken the place/);
    assert.equal((await ask(lease.coordinate, lease.token)).status, 0);
    await plane.grantBound("ben", "API:/a");
  });
});
