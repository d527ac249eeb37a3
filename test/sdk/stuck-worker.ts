/** A worker whose task ends only on request; see worker.test.ts. */
import { createClient } from "../../src/sdk/index.ts";

const [url, workerId] = process.argv.slice(2);
const client = createClient({ url });
client.worker({
  workerId,
  drainMs: 0,
  handler: (_task, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
});
