/** TLS ends before it is known which shard a connection is for. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { secureGet, tlsFolder } from "../server/tls-client.ts";
import { until } from "./cluster-harness.ts";
import { createTenants, evenly, tenants } from "./shards-harness.ts";

test("over TLS too every server takes requests about every tenant", async (t) => {
  const { files, authority } = tlsFolder(t);
  const { urls } = await evenly(t, 2, { ...files });
  const ca = authority.cert;
  for (const url of urls) {
    for (const tenant of [...tenants, "default"]) {
      const { status, text } = await secureGet(url, "/v1/leases", { ca, headers: { "leasehold-tenant": tenant } });
      // Without a tenant of that name its own shard says so.
      assert.deepEqual(
        [status, text.includes("tenant_unknown")],
        tenant === "default" ? [200, false] : [404, true],
        text,
      );
    }
  }
});

test("S4: connections that say nothing take a share of all, and the oldest of them is closed for the next", async (t) => {
  const { urls } = await evenly(t, 1, { connectionsMax: 16 });
  await createTenants(urls[0] ?? "");
  const { hostname, port } = new URL(urls[0] ?? "");
  const silent = Array.from({ length: 8 }, () => connect(Number(port), hostname));
  t.after(() => {
    for (const socket of silent) socket.destroy();
  });
  await until(() => silent.filter(({ destroyed }) => destroyed).length >= 4);
  const answer = await fetch(`${urls[0]}/v1/leases`, { headers: { "leasehold-tenant": "acme" } });
  assert.equal(answer.status, 200);
});
