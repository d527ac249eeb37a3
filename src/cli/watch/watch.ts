/** `--watch`: a list that is redrawn in place on a terminal, and lines of what changes everywhere else. */
import type { Client } from "../../sdk/client.ts";
import type { EventsOptions } from "../../sdk/events.ts";
import type { Call, Flag } from "../command.ts";
import { describeFailure } from "../failure.ts";
import { untilStopped } from "../stop-signals.ts";
import { openScreen, type Screen } from "../top/screen.ts";
import { listView } from "./list-view.ts";
import type { WatchedList } from "./part.ts";
import { type Trouble, Watcher } from "./watcher.ts";

export const watchFlag: Flag = {
  words: "go on: redrawn in place on a terminal, a line for each change in a pipe or with --json",
};

export interface Watched {
  readonly lists: readonly WatchedList[];
  /** Only events about these are sent. */
  readonly filter?: Pick<EventsOptions, "resource" | "agentId">;
}

const frameMs = 250;
/** People read no faster; programs want each state. */
const gapMs = { terminal: 300, lines: 50 };
const refreshMs = 5_000;

/** A terminal that cannot move its cursor gets lines. */
export function watchLists(call: Call, watched: Watched): Promise<undefined> {
  const isScreen = call.out.isTerminal && call.environment["TERM"] !== "dumb";
  return call.connect().then((client) => (isScreen ? onScreen(call, client, watched) : asLines(call, client, watched)));
}

async function asLines(call: Call, client: Client, { lists, filter = {} }: Watched): Promise<undefined> {
  const { out } = call;
  await untilStopped(async (signal) => {
    let isBroken = false;
    const watcher = new Watcher(client, lists, {
      filter,
      signal,
      gapMs: gapMs.lines,
      refreshMs: null,
      onChange: (changes) => {
        for (const { json, line } of changes) out.isJson ? out.json(json()) : out.print(line());
      },
      onTrouble: (trouble) => {
        if (trouble !== null && !isBroken) out.note("the connection broke; it goes on where it was");
        if (trouble === null && isBroken) out.note("connected again");
        isBroken = trouble !== null;
      },
    });
    await untilAborted(signal, async () => {
      await watcher.begin();
      await watcher.run();
    });
  });
}

/** A signal ends the work; that is not a failure. */
async function untilAborted(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function onScreen(call: Call, client: Client, watched: Watched): Promise<undefined> {
  const ending = new AbortController();
  await untilStopped(async (stopped) => {
    const signal = AbortSignal.any([stopped, ending.signal]);
    const view = new ListScreen(call, client, watched, signal, () => ending.abort());
    await untilAborted(signal, () => view.run());
  });
}

class ListScreen {
  private readonly call: Call;
  private readonly watcher: Watcher;
  private readonly title: string;
  private readonly quit: () => void;
  private screen: Screen | null = null;
  private trouble: Trouble = null;
  private offset = 0;
  private offsetMax = 0;

  constructor(call: Call, client: Client, { lists, filter = {} }: Watched, signal: AbortSignal, quit: () => void) {
    this.call = call;
    this.quit = quit;
    this.title = [lists[0]?.command ?? "", ...call.words].join(" ");
    this.watcher = new Watcher(client, lists, {
      filter,
      signal,
      gapMs: gapMs.terminal,
      refreshMs,
      onChange: () => this.draw(),
      onTrouble: (trouble) => {
        this.trouble = trouble;
        this.draw();
      },
    });
  }

  async run(): Promise<void> {
    // A wrong address or key is reported as usual, before the screen is taken.
    await this.watcher.begin();
    const input = process.stdin.isTTY ? process.stdin : null;
    const screen = openScreen(input, process.stdout, {
      onKey: (key) => this.press(key),
      onResize: () => this.draw(),
    });
    this.screen = screen;
    const timer = setInterval(() => this.draw(), frameMs);
    try {
      this.draw();
      await this.watcher.run();
    } finally {
      clearInterval(timer);
      this.screen = null;
      screen.close();
    }
  }

  private draw(): void {
    const { screen, trouble } = this;
    if (screen === null) return;
    const now = performance.now();
    const { url, out } = this.call;
    const seen = {
      title: this.title,
      url,
      lists: this.watcher.lists,
      trouble: trouble === null ? null : { forMs: now - trouble.since, line: describeFailure(trouble.error, url).line },
      now,
      offset: this.offset,
    };
    const { lines, offsetMax } = listView(seen, screen, out.paint);
    this.offsetMax = offsetMax;
    screen.draw(lines);
  }

  private press(key: string): void {
    if (key === "q" || key === "\u0003") return this.quit();
    const page = Math.max(1, (this.screen?.rows ?? 24) - 4);
    const step = steps[key]?.(page) ?? 0;
    this.offset = Math.max(0, Math.min(this.offsetMax, this.offset + step));
    this.draw();
  }
}

/** How far a key scrolls, by the lines of a page. */
const steps: Readonly<Record<string, (page: number) => number>> = {
  "\u001b[A": () => -1,
  k: () => -1,
  "\u001b[B": () => 1,
  j: () => 1,
  "\u001b[5~": (page) => -page,
  "\u001b[6~": (page) => page,
  " ": (page) => page,
  g: () => Number.MIN_SAFE_INTEGER,
  G: () => Number.MAX_SAFE_INTEGER,
};
