/**
 * The same load on two servers, alternating, to measure the difference between them: a window on one, a window on the
 * other, and the next pair in the reverse order, so that other work on the machine affects both alike. The rate is
 * fixed and far below what a server can do: at full speed a closed loop measures its own queue, and a slower server
 * only gets fewer requests. Prints the p50 and p99 of every window.
 *
 *   node bench/load-turns.ts PORT PORT RATE WINDOW_SECONDS PAIRS
 */
import { percentile } from "./children.ts";
import { MixClient } from "./mix-client.ts";

const connections = 16;
const tickMs = 1;
/** Left out at the start of each window, until the idle server is warm again. */
const settleMs = 100;

const [first = 0, second = 0, rate = 1_000, windowSeconds = 1, pairs = 10] = process.argv.slice(2).map(Number);

class Load {
  private readonly clients: MixClient[];
  /** The due times of the commands that wait for a free connection. */
  private readonly late: number[] = [];
  latencies: number[] = [];

  constructor(port: number) {
    this.clients = Array.from({ length: connections }, (_, index) => {
      const client: MixClient = new MixClient(port, index, "mix", () => {
        const sentAt = this.sentAt.get(client);
        if (sentAt !== undefined) this.latencies.push(performance.now() - sentAt);
        const due = this.late.shift();
        if (due !== undefined) this.sendOn(client, due);
      });
      return client;
    });
  }
  private readonly sentAt = new Map<MixClient, number>();

  get isIdle(): boolean {
    return this.late.length === 0 && this.clients.every(({ isFree }) => isFree);
  }

  send(now: number): void {
    const client = this.clients.find(({ isFree }) => isFree);
    if (client === undefined) this.late.push(now);
    else {
      // Appended, so that every connection is used in turn.
      this.clients.push(...this.clients.splice(this.clients.indexOf(client), 1));
      this.sendOn(client, now);
    }
  }

  private sendOn(client: MixClient, due: number): void {
    this.sentAt.set(client, due);
    client.sendNext();
  }
}

interface Window {
  readonly p50: number;
  readonly p99: number;
}

const loads = [new Load(first), new Load(second)] as const;
await until(() => loads.every(({ isIdle }) => isIdle));
// The first windows are warm-up.
for (const load of [...loads, ...loads]) await run(load);
const windows: [Window[], Window[]] = [[], []];
for (let pair = 0; pair < pairs; pair++) {
  for (const side of pair % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) windows[side].push(await run(loads[side]));
}
console.log(JSON.stringify(windows));
process.exit(0);

async function run(load: Load): Promise<Window> {
  const began = performance.now();
  const measuredFrom = began + settleMs;
  const end = measuredFrom + windowSeconds * 1_000;
  let sent = 0;
  let isMeasured = false;
  for (let now = began; now < end; now = performance.now()) {
    if (!isMeasured && now >= measuredFrom) {
      isMeasured = true;
      load.latencies = [];
    }
    for (; sent < ((now - began) / 1_000) * rate; sent++) load.send(now);
    await new Promise((resolve) => setTimeout(resolve, tickMs));
  }
  await until(() => load.isIdle);
  const sorted = load.latencies.sort((a, b) => a - b);
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, tickMs));
}
