import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { OperationAnswers } from "../../src/sdk/wire.ts";
import { startServer } from "../../src/server/start.ts";
import { clientOf } from "./harness.ts";

for (const store of ["sqlite", "memory"] as const)
  test(`a server on ${store} shows itself as the one that leads, and does not resign`, async (t) => {
    const data = mkdtempSync(join(tmpdir(), "leasehold-alone-"));
    const server = await startServer({ port: 0, store, data });
    t.after(async () => {
      await server.close();
      rmSync(data, { recursive: true });
    });
    const client = clientOf(server.address.url);
    const { body } = await client.get<OperationAnswers["get_cluster"]>("/v1/cluster");
    const { url } = server.address;
    assert.equal(body.store, store);
    assert.deepEqual(
      body.servers.map((one) => [one.server_id, one.url, one.alive]),
      [[body.server_id, url, true]],
    );
    assert.deepEqual(
      body.shards.map((one) => [one.shard, one.server_id, one.url, one.lease_left_ms]),
      [[0, body.server_id, url, null]],
    );
    assert.equal((await client.post("/v1/cluster/resign", {})).status, 400);
  });
