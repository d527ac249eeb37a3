/** A worker of the fleet: `node examples/fleet-worker.ts {type}.{instance}`. SIGTERM drains it. */
import { setTimeout as work } from "node:timers/promises";
import { createClient } from "../src/sdk/index.ts";

const [, , workerId = `example.${process.pid}`] = process.argv;
const { LEASEHOLD_URL, LEASEHOLD_KEY, LEASEHOLD_KEY_FILE } = process.env;
const client = createClient({ url: LEASEHOLD_URL, key: LEASEHOLD_KEY, keyFile: LEASEHOLD_KEY_FILE });

const worker = client.worker({
  workerId,
  types: ["example.edit"],
  concurrency: 2,
  handler: async ({ inputs }, { signal, fence, leases }) => {
    await work(30 + Math.random() * 60, null, { signal });
    const { number } = inputs as { readonly number: number };
    return `edit ${number} of ${leases[0]?.resource} under fence ${leases[0]?.fence ?? fence}`;
  },
});
await worker.done;
await client.close();
