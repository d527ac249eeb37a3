// A user's program, run on every platform that the SDK supports. Prints "all is well" if it is.
import { createClient, inspectToken, LeaseholdError, narrow } from "leasehold/sdk";

const client = createClient({ url: globalThis.process.env.LEASEHOLD_URL });
const check = (isSo, what) => {
  if (!isSo) throw new Error(`not so: ${what}`);
};

const agent = await client.call("register_agent", {});
check(agent.agent_id !== "", "an agent is registered");
const name = `X:/program/${agent.agent_id}`;

const seen = await client.withLease([name, { predicate: "CONSUMES", resource: "X:/shared" }], async (held) => {
  held.assertHeld();
  check(held.leases.length === 2 && held.fenceOf(name) > 0, "both leases are held");
  check(!held.signal.aborted && held.remainingMs() > 0, "there is time left");
  const { leases } = await client.call("list_leases", { resource: name });
  check(leases.length === 1, "the server knows of it");
  return leases[0].id;
});
check((await client.call("get_lease", { lease_id: seen })).state === "RELEASED", "it is released in the end");

try {
  await client.call("get_lease", { lease_id: "lse_never" });
  check(false, "what never was is refused");
} catch (error) {
  check(error instanceof LeaseholdError && error.code === "lease_unknown" && error.status === 404, String(error));
}

const lost = await client
  .withLease(
    name,
    async ({ signal }) => {
      await client.call("revoke", { resource_prefix: name, reason: "a test" });
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
    { ttlMs: 600 },
  )
  .catch((error) => error);
check(lost instanceof LeaseholdError && lost.code === "lease_lost", String(lost));

const narrowed = await client.withLease(name, ({ leaseOf }) => narrow(leaseOf(name).token, { operations: ["read"] }), {
  tokens: true,
});
check(inspectToken(narrowed).caveats[0].type === "operations", "a token is narrowed without the server");

for await (const event of client.events({ since: 0, types: ["lease.granted"] })) {
  check(event.type === "lease.granted" && event.lease.id !== "", "events arrive");
  break;
}
await client.close();
console.log("all is well");
if (globalThis.process.versions.bun === undefined) globalThis.process.exit(0);
