/** A live view of it all. */
import type { Client } from "../../sdk/client.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { describeFailure } from "../failure.ts";
import { createPaint } from "../paint.ts";
import { UsageProblem } from "../problem.ts";
import { type Snapshot, takeSnapshot } from "../top/model.ts";
import { openScreen } from "../top/screen.ts";
import { arrange, type Choice, firstChoice, press } from "../top/state.ts";
import { view } from "../top/view.ts";

const intervalMsDefault = 1_000;
const frameMs = 100;

const topCommand: Command = {
  name: "top",
  summary: "shows live who holds what, who waits for whom, and how fast it goes",
  usage: "[--interval TIME]",
  about: `Keys: arrows choose a lease, s sorts, / filters, r revokes the chosen one, p pauses, ? helps, q quits. With --json it
prints one look and ends.`,
  flags: { interval: { sign: "TIME", words: "how often the server is polled [1s]" } },
  examples: [
    ["leasehold top", "watch the fleet"],
    ["leasehold top --json", "one look, for a script"],
  ],
  run: async (call) => {
    const { out } = call;
    const intervalMs = Math.max(100, call.durationMs("interval") ?? intervalMsDefault);
    const client = await call.connect();
    if (out.isJson) {
      const { leases, hasMoreLeases, waiters, tasks, counts } = await takeSnapshot(client);
      const counted = counts === null ? null : Object.fromEntries(counts);
      out.json({ leases, waiters, tasks, counts: counted, has_more: hasMoreLeases });
      return exitCodes.done;
    }
    if (!process.stdout.isTTY || !process.stdin.isTTY) {
      throw new UsageProblem("top needs a terminal; for a script there are `leasehold top --json` and `leasehold ls`");
    }
    // What is wrong with address or key is said as usual, before the screen is taken.
    const first = await takeSnapshot(client);
    return live(client, call.url, first, intervalMs, out.paint.isOn);
  },
};

function live(client: Client, url: string, first: Snapshot, intervalMs: number, hasColours: boolean): Promise<number> {
  let snapshot = first;
  let before: Snapshot | null = null;
  let trouble: string | null = null;
  let choice: Choice = firstChoice;
  let isAsking = false;
  return new Promise((resolve) => {
    const screen = openScreen(process.stdin, process.stdout, { onKey, onResize: () => draw() });
    const paint = { ...createPaint(true), ...(hasColours ? {} : plainColours()) };
    const draw = (): void => {
      const seen = { url, snapshot, before, trouble, now: choice.isPaused ? snapshot.at : performance.now() };
      screen.draw(view(seen, choice, screen, paint));
    };
    const look = async (): Promise<void> => {
      if (isAsking || choice.isPaused) return;
      isAsking = true;
      try {
        const next = await takeSnapshot(client);
        before = snapshot;
        snapshot = next;
        trouble = null;
      } catch (error) {
        trouble = describeFailure(error, url).line;
      } finally {
        isAsking = false;
      }
    };
    const revoke = async (leaseId: string): Promise<void> => {
      try {
        const { revoked } = await client.call("revoke", {
          lease_id: leaseId,
          reason: "revoked by an operator, in top",
        });
        choice = { ...choice, asks: null, message: revoked === 1 ? "revoked" : "it had ended already" };
      } catch (error) {
        choice = { ...choice, asks: null, message: describeFailure(error, url).line };
      }
      await look();
    };
    const timers = [setInterval(look, intervalMs), setInterval(draw, frameMs)];
    const end = (code: number): void => {
      for (const timer of timers) clearInterval(timer);
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.off(signal, stop);
      screen.close();
      resolve(code);
    };
    const stop = (): void => end(exitCodes.done);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
    function onKey(key: string): void {
      const { asks } = choice;
      const pressed = press(choice, key, arrange(snapshot.leases, choice));
      choice = pressed.choice;
      if (pressed.wish === "quit") return end(exitCodes.done);
      if (pressed.wish === "revoke" && asks !== null) void revoke(asks);
      if (pressed.wish === "refresh") void look();
      draw();
    }
    draw();
  });
}

/** Without colours the chosen line must still be seen. */
function plainColours() {
  const { isOn: _isOn, inverse: _inverse, ...colours } = createPaint(false);
  return colours;
}

export const commands: readonly Command[] = [topCommand];
