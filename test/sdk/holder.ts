/**
 * Works in small steps under a short lease, and prints each step, until it has lost the lease; see
 * lost-contact.test.ts.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createClient, LeaseLost } from "../../src/sdk/index.ts";

const client = createClient({ url: process.argv[2] });
try {
  await client.withLease(
    "FILE:/pause",
    async ({ assertHeld, fenceOf }) => {
      for (;;) {
        assertHeld();
        console.log(`work ${fenceOf("FILE:/pause")}`);
        await pause(10);
      }
    },
    { ttlMs: 2_000, retryLost: "never" },
  );
} catch (error) {
  console.log(error instanceof LeaseLost ? `lost ${error.reason}` : `failed ${String(error)}`);
}
await client.close();
