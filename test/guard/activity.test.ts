import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { makeProject, payloadOf, serveGuards } from "./harness.ts";

interface Heartbeat {
  readonly lease_ids?: readonly string[];
  readonly activity?: boolean;
}

/** A server between the hooks and the real one, which notes heartbeats. */
async function listening(url: string) {
  const heartbeats: Heartbeat[] = [];
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const sent = Buffer.concat(chunks);
    if (request.url === "/v1/heartbeat") heartbeats.push(JSON.parse(sent.toString()) as Heartbeat);
    const { method = "GET" } = request;
    const { authorization } = request.headers;
    const headers = { "content-type": "application/json", ...(authorization !== undefined && { authorization }) };
    const body = sent.length === 0 ? {} : { body: sent };
    const answer = await fetch(url + (request.url ?? ""), { method, headers, ...body });
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, heartbeats, close: () => server.close() };
}

test("L10: activity is reported for the leases whose files have changed, not for a read or a write of the same", async (t) => {
  const fixture = await serveGuards();
  t.after(() => fixture.close());
  const middle = await listening(fixture.server.address.url);
  t.after(() => middle.close());
  const project = await makeProject(middle.url);
  t.after(() => project.remove());
  const hook = (event: string, toolName: string, input: object) =>
    project.hook("claude", event, payloadOf("claude", event, "one", project.root, toolName, input));
  const run = async (toolName: string, input: object, effect = () => {}) => {
    assert.equal((await hook("PreToolUse", toolName, input)).denied, null);
    effect();
    assert.equal((await hook("PostToolUse", toolName, input)).code, 0);
  };
  const edit = (path: string) => ({ file_path: join(project.root, path), old_string: "a", new_string: "b" });
  project.write("a.ts", "one");
  project.write("b.ts", "one");
  await run("Edit", edit("b.ts"));
  await run("Edit", edit("a.ts"), () => project.write("a.ts", "two"));
  await run("Read", { file_path: join(project.root, "a.ts") });
  await run("Bash", { command: "echo three > b.ts" }, () => project.write("b.ts", "three"));
  await run("Bash", { command: "cat a.ts b.ts" });

  const { body } = await fixture.get<{ leases: readonly { id: string; resource: string }[] }>("/v1/leases");
  const idOf = (path: string) => body.leases.find(({ resource }) => resource.endsWith(path))?.id;
  const active = middle.heartbeats.filter(({ activity }) => activity === true);
  assert.deepEqual(
    active.map(({ lease_ids: ids }) => ids),
    [[idOf("/a.ts")], [idOf("/b.ts")]],
  );
});
