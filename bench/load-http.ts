/**
 * Load over HTTP from plain sockets, one request in flight on each and the next one sent at once. `mix`: acquire,
 * heartbeat, release in equal parts, on distinct resources. `echo`: the acquire body, returned by a bare server. Prints
 * requests per second and latencies.
 *
 *   node bench/load-http.ts PORT CONNECTIONS SECONDS mix|echo
 */
import { percentile } from "./children.ts";
import { MixClient } from "./mix-client.ts";

const [port = 0, connections = 64, seconds = 5] = process.argv.slice(2, 5).map(Number);
const mode = process.argv[5] === "echo" ? "echo" : "mix";
const latencies: number[] = [];
let isWarm = false;

for (let index = 0; index < connections; index++) {
  let sentAt = 0;
  const client = new MixClient(port, index, mode, () => {
    const now = performance.now();
    if (isWarm) latencies.push(now - sentAt);
    sentAt = now;
    client.sendNext();
  });
}
await new Promise((resolve) => setTimeout(resolve, 1_500));
isWarm = true;
const began = performance.now();
await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
isWarm = false;
const rate = latencies.length / ((performance.now() - began) / 1000);
latencies.sort((a, b) => a - b);
console.log(JSON.stringify({ rate, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }));
process.exit(0);
