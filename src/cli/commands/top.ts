/** A live view of it all. */
import type { Client } from "../../sdk/client.ts";
import type { Command } from "../command.ts";
import { describeFailure } from "../failure.ts";
import { createPaint, type Paint } from "../paint.ts";
import { UsageProblem } from "../problem.ts";
import { RateMeter, type Snapshot, takeSnapshot } from "../top/model.ts";
import { arrange, type Row, rowsOf } from "../top/rows.ts";
import { openScreen, type Screen } from "../top/screen.ts";
import { type Choice, firstChoice, press } from "../top/state.ts";
import { view } from "../top/view.ts";

const intervalMsDefault = 1_000;
const frameMs = 100;
const stopping = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

const topCommand: Command = {
  name: "top",
  summary: "shows live what each agent does, who waits for whom, and how fast it goes",
  usage: "[--interval TIME]",
  about: `An agent is working, blocked, waiting for a person, idle or lost; below each wait stands who is in its way. Keys: arrows
choose, s sorts, / filters, r revokes the chosen lease, p pauses, ? helps, q quits. With --json it prints one snapshot.`,
  flags: { interval: { sign: "TIME", words: "how often the server is polled [1s]" } },
  examples: [
    ["leasehold top", "watch the fleet"],
    ["leasehold top --json", "one snapshot, for a script"],
  ],
  run: async (call) => {
    const { out } = call;
    const intervalMs = Math.max(100, call.durationMs("interval") ?? intervalMsDefault);
    const client = await call.connect();
    if (out.isJson) {
      const { overview, agents, waits, hasMore } = await takeSnapshot(client);
      out.json({ overview, agents, waits, has_more: hasMore });
      return undefined;
    }
    if (!process.stdout.isTTY || !process.stdin.isTTY) {
      throw new UsageProblem("top needs a terminal; for a script there are `leasehold top --json` and `leasehold ls`");
    }
    // A wrong address or key is reported as usual, before the screen is taken.
    const first = await takeSnapshot(client);
    return new LiveView(client, call.url, first, intervalMs, out.paint.isOn).ended;
  },
};

/** The screen, what it shows, and what the user chose; `ended` settles when the user or a signal ends it. */
class LiveView {
  readonly ended: Promise<undefined>;
  private readonly client: Client;
  private readonly url: string;
  private readonly paint: Paint;
  private readonly screen: Screen;
  private readonly timers: readonly NodeJS.Timeout[];
  private snapshot: Snapshot;
  private rows: readonly Row[] = [];
  private readonly meter = new RateMeter(performance.now());
  private readonly following = new AbortController();
  private hasRates = true;
  private trouble: string | null = null;
  private choice: Choice = firstChoice;
  private isPolling = false;
  private readonly end: () => void;

  constructor(client: Client, url: string, first: Snapshot, intervalMs: number, hasColours: boolean) {
    this.client = client;
    this.url = url;
    this.snapshot = first;
    this.paint = { ...createPaint(true), ...(hasColours ? {} : plainColours()) };
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.ended = promise;
    const stop = (): void => this.end();
    this.end = () => {
      this.following.abort();
      for (const timer of this.timers) clearInterval(timer);
      for (const signal of stopping) process.off(signal, stop);
      this.screen.close();
      resolve(undefined);
    };
    for (const signal of stopping) process.on(signal, stop);
    const events = { onKey: (key: string) => this.press(key), onResize: () => this.draw() };
    this.screen = openScreen(process.stdin, process.stdout, events);
    this.timers = [setInterval(() => void this.poll(), intervalMs), setInterval(() => this.draw(), frameMs)];
    void this.meter
      .follow(client, first.overview.sequence, this.following.signal)
      .then((hasRates) => (this.hasRates = hasRates));
    this.arrange();
    this.draw();
  }

  private arrange(): void {
    const { sort, filter, typing } = this.choice;
    this.rows = arrange(rowsOf(this.snapshot), sort, typing ?? filter);
  }

  private draw(): void {
    const { url, snapshot, rows, trouble, choice } = this;
    const now = choice.isPaused ? snapshot.at : performance.now();
    const rates = this.hasRates ? this.meter.rates(performance.now()) : null;
    this.screen.draw(view({ url, snapshot, rows, rates, trouble, now }, choice, this.screen, this.paint));
  }

  private async poll(): Promise<void> {
    if (this.isPolling || this.choice.isPaused) return;
    this.isPolling = true;
    try {
      this.snapshot = await takeSnapshot(this.client);
      this.arrange();
      this.trouble = null;
    } catch (error) {
      this.trouble = describeFailure(error, this.url).line;
    } finally {
      this.isPolling = false;
    }
  }

  private async revoke(leaseId: string): Promise<void> {
    let message: string;
    try {
      const reason = "revoked by an operator, in top";
      const { revoked } = await this.client.call("revoke", { lease_id: leaseId, reason });
      message = revoked === 1 ? "revoked" : "it had ended already";
    } catch (error) {
      message = describeFailure(error, this.url).line;
    }
    this.choice = { ...this.choice, asks: null, message };
    await this.poll();
  }

  private press(key: string): void {
    const { asks } = this.choice;
    const pressed = press(this.choice, key, this.rows);
    this.choice = pressed.choice;
    this.arrange();
    if (pressed.action === "quit") return this.end();
    if (pressed.action === "revoke" && asks !== null) void this.revoke(asks);
    if (pressed.action === "refresh") void this.poll();
    this.draw();
  }
}

/** Without colours the chosen line must still be seen. */
function plainColours() {
  const { isOn: _isOn, inverse: _inverse, ...colours } = createPaint(false);
  return colours;
}

export const commands: readonly Command[] = [topCommand];
