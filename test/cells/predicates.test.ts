import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ask, type BoundLease, serveTcp, startPlane, until } from "./harness.ts";

test("G4, L15: readers of a bound resource cannot write, a downgrade takes the writing away, a transfer all of it", async (t) => {
  const plane = await startPlane(t);
  const folder = join(plane.folder, "area");
  mkdirSync(folder);
  writeFileSync(join(folder, "a"), "old");
  const echo = await serveTcp(t, (socket) => socket.pipe(socket));
  const cell = await plane.cell("fs", [
    { resource: "FILE:/area", driver: "files", options: { folder } },
    { resource: "DB:/a", driver: "tcp", options: { target: echo } },
  ]);
  const put = async (token: string, at: string): Promise<string> => {
    const { status, error } = await ask(`${at}/a`, token, { method: "PUT", body: "new" });
    return `${status} ${error ?? ""}`;
  };
  const intents = [{ predicate: "CONSUMES", resource: "FILE:/area" }];
  const readers = [await plane.grantBound("ann", "FILE:/area", { intents })];
  readers.push(await plane.grantBound("ben", "FILE:/area", { intents }));
  for (const { token, coordinate } of readers) {
    assert.equal((await ask(`${coordinate}/a`, token)).text, "old");
    assert.equal(await put(token, coordinate), "401 caveat_failed");
  }
  assert.equal(readFileSync(join(folder, "a"), "utf8"), "old");
  for (const { id } of readers) await plane.post(`/v1/leases/${id}/release`);

  const writer = await plane.grantBound("cora", "FILE:/area");
  assert.equal(await put(writer.token, writer.coordinate), "201 ");
  const weaker = await plane.post<BoundLease>(`/v1/leases/${writer.id}/downgrade`, { predicate: "CONSUMES" });
  assert.equal(weaker.status, 200, weaker.text);
  // The answer came after the cell had taken it.
  for (const token of [writer.token, weaker.body.token]) {
    assert.equal(await put(token, writer.coordinate), "401 caveat_failed");
    assert.equal((await ask(`${writer.coordinate}/a`, token)).text, "new");
  }
  await plane.register("dan");
  const moved = await plane.post<BoundLease>(`/v1/leases/${writer.id}/transfer`, { to_agent_id: "dan" });
  assert.equal(moved.status, 200, moved.text);
  assert.equal((await ask(`${writer.coordinate}/a`, weaker.body.token)).error, "stale_token");

  const other = await plane.grantBound("eve", "DB:/a");
  await cell.kill();
  await until(async () => {
    const { body } = await plane.get<{ cells: { connected: boolean }[] }>("/v1/cells");
    return body.cells[0]?.connected === false ? true : null;
  }, "the server knows that the cell is gone");
  for (const [way, body] of [
    ["downgrade", { predicate: "CONSUMES" }],
    ["transfer", { to_agent_id: "dan" }],
  ] as const) {
    const refused = await plane.post<{ reason?: string }>(`/v1/leases/${other.id}/${way}`, body);
    assert.deepEqual([refused.status, refused.body.reason], [423, "cell_not_ready"], refused.text);
  }
  const { body } = await plane.get<{ predicate: string; agent_id: string }>(`/v1/leases/${other.id}`);
  assert.deepEqual([body.predicate, body.agent_id], ["MUTATES", "eve"]);
});
