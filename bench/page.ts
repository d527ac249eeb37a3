/**
 * The page at the size of a large fleet, in Chromium: 2,000 agents, 20,000 leases, 50,000 tasks, 2,000 events a second.
 * First paint, interactions, from an event to pixels, memory of the tab; and what twenty open pages cost the server.
 *
 *   npm run bench:page [-- --seconds 30 --agents 2000 --tasks 50000 --events 2000 --part tab|server --profile FILE]
 *
 * `--minutes 10` leaves the tab open for that time instead of `--seconds`, and prints its memory every minute.
 * Server, load and browser share the machine, so on two cores the figures are worse than a user's.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import type { CDPSession, Page } from "playwright-core";
import { WebSocket } from "ws";
import { openBrowser, openPage } from "../test/page/browser.ts";
import { cpuMsOf, format, removeFolder, startLeasehold } from "./children.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    minutes: { type: "string" },
    agents: { type: "string", default: "2000" },
    leases: { type: "string", default: "10" },
    tasks: { type: "string", default: "50000" },
    events: { type: "string", default: "2000" },
    part: { type: "string", default: "tab,server" },
    profile: { type: "string" },
  },
});
const seconds = values.minutes === undefined ? Number(values.seconds) : Number(values.minutes) * 60;
const [agents, leasesEach] = [Number(values.agents), Number(values.leases)];
const [tasks, eventsPerSecond] = [Number(values.tasks), Number(values.events)];
const pagesMany = 20;
const bars = { paintMs: 1_000, interactionMs: 100, pixelsMs: 250, memoryMb: 200, serverShare: 0.1 };

const server = await startLeasehold();
const url = `http://127.0.0.1:${server.port}`;
const socket = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`);
await new Promise((resolve) => socket.once("open", resolve));
let lastId = 0;
const waiting = new Map<string, (body: Record<string, unknown>) => void>();
socket.on("message", (data) => {
  const read = JSON.parse(String(data)) as unknown;
  for (const { id, body } of (Array.isArray(read) ? read : [read]) as { id: string; body: Record<string, unknown> }[]) {
    waiting.get(id)?.(body);
    waiting.delete(id);
  }
});

type Command = readonly [op: string, input: object];

function send(commands: readonly Command[]): Promise<readonly Record<string, unknown>[]> {
  const frames = commands.map(([op, input]) => ({ id: String(++lastId), op, input }));
  const answers = frames.map(({ id }) => new Promise<Record<string, unknown>>((resolve) => waiting.set(id, resolve)));
  socket.send(JSON.stringify(frames));
  return Promise.all(answers);
}

async function sendAll(commands: readonly Command[]): Promise<void> {
  for (let at = 0; at < commands.length; at += 500) await send(commands.slice(at, at + 500));
}

const nameOf = (n: number): string => `agent-${String(n).padStart(4, "0")}`;
const numbers = (length: number): readonly number[] => Array.from({ length }, (_, n) => n);
const mutates = (resource: string) => [{ predicate: "MUTATES", resource }];

console.log(`filling: ${format(agents)} agents, ${format(agents * leasesEach)} leases, ${format(tasks)} tasks`);
await sendAll(numbers(agents).map((n) => ["register_agent", { agent_id: nameOf(n) }]));
await sendAll(
  numbers(agents).map((n) => [
    "acquire",
    {
      agent_id: nameOf(n),
      ttl_ms: 300_000,
      intents: numbers(leasesEach).flatMap((k) => mutates(`FILE:/repo-${n % 20}/part-${n % 200}/agent-${n}/${k}.ts`)),
    },
  ]),
);
for (let made = 0; made < tasks; made += 1_000) {
  const batch = numbers(Math.min(1_000, tasks - made)).map((n) => ({
    task_type: n % 2 === 0 ? "build" : "review",
    principal_ai: "planner",
    task_summary: `Package ${made + n}`,
  }));
  const response = await fetch(`${url}/v1/tasks/batch`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ tasks: batch }),
  });
  await response.text();
}

/** A cycle of an agent that holds other leases makes two events: granted and released. */
let isLoading = true;
let cycles = 0;
async function load(): Promise<void> {
  const [turnMs, perTurn] = [20, Math.max(1, Math.round((eventsPerSecond / 2) * 0.02))];
  for (let next = performance.now(); isLoading; next += turnMs) {
    const from = cycles;
    cycles += perTurn;
    const granted = await send(
      numbers(perTurn).map((k) => {
        const n = (from + k) % agents;
        return ["acquire", { agent_id: nameOf(n), intents: mutates(`FILE:/busy/${n}`), ttl_ms: 60_000 }];
      }),
    );
    const ids = granted.flatMap(({ leases }) => ((leases ?? []) as { id: string }[]).map(({ id }) => id));
    await send(ids.map((lease_id) => ["release_lease", { lease_id }]));
    const left = next + turnMs - performance.now();
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
    else next = performance.now() - turnMs;
  }
}

/** Every agent once a minute, so that leases last as long as the run does. */
async function keepAlive(): Promise<void> {
  const perSecond = Math.ceil(agents / 60);
  for (let from = 0; isLoading; from = (from + perSecond) % agents) {
    await send(numbers(perSecond).map((k) => ["heartbeat_all", { agent_id: nameOf((from + k) % agents) }]));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

function p95(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length * 0.95)] ?? 0;
}

/** From the click to the second frame after it: by then the answer is drawn. */
async function interactions(page: Page): Promise<Readonly<Record<string, readonly number[]>>> {
  const clicks = [
    ".tile.blocked",
    ".tile.working",
    ".tile.working",
    "nav a[href='#/events']",
    "nav a[href='#/now']",
    "nav a[href='#/tasks']",
    "nav a[href='#/now']",
  ];
  return (await page.evaluate(async (selectors) => {
    const { document, requestAnimationFrame } = globalThis as unknown as {
      document: { querySelector(selector: string): { click(): void; scrollBy(x: number, y: number): void } | null };
      requestAnimationFrame(draw: () => void): void;
    };
    const frame = () => new Promise<void>((resolve) => requestAnimationFrame(() => resolve()));
    const samples: Record<string, number[]> = {};
    const keep = (name: string, ms: number): void => {
      samples[name] = [...(samples[name] ?? []), ms];
    };
    for (let round = 0; round < 8; round++) {
      for (const selector of selectors) {
        const began = performance.now();
        document.querySelector(selector)?.click();
        await frame();
        await frame();
        keep(selector, performance.now() - began);
        await new Promise((resolve) => setTimeout(resolve, 120));
      }
      const scrolled = performance.now();
      document.querySelector(".scroll")?.scrollBy(0, 3_000);
      await frame();
      await frame();
      keep("scroll", performance.now() - scrolled);
    }
    return samples;
  }, clicks)) as Readonly<Record<string, readonly number[]>>;
}

/** Grants to the first lane, and waits for its bar: both clocks are this machine's. */
async function toPixels(page: Page): Promise<readonly number[]> {
  await page.evaluate("location.hash = '#/now?q=probe'");
  await send([["register_agent", { agent_id: "probe" }]]);
  await page.locator(".lane", { hasText: "probe" }).waitFor();
  const samples: number[] = [];
  for (let n = 0; n < 40; n++) {
    const seen = page.evaluate(async (name) => {
      const { document, requestAnimationFrame } = globalThis as unknown as {
        document: { querySelector(selector: string): unknown };
        requestAnimationFrame(draw: () => void): void;
      };
      while (document.querySelector(`.bar[title*="${name}"]`) === null)
        await new Promise<void>((resolve) => requestAnimationFrame(() => resolve()));
      return Date.now();
    }, `/probe/${n},`);
    await new Promise((resolve) => setTimeout(resolve, 60 + 17 * (n % 5)));
    const began = Date.now();
    const [granted] = await send([["acquire", { agent_id: "probe", intents: mutates(`FILE:/probe/${n}`) }]]);
    samples.push((await seen) - began);
    const [lease] = (granted?.["leases"] ?? []) as { id: string }[];
    await send([["release_lease", { lease_id: lease?.id }]]);
  }
  return samples;
}

async function heapMb(cdp: CDPSession): Promise<number> {
  await cdp.send("HeapProfiler.collectGarbage");
  const { metrics } = await cdp.send("Performance.getMetrics");
  return (metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? 0) / 2 ** 20;
}

/** What the tab's process has to itself, code and buffers of Chromium included. */
async function tabMb(browser: CDPSession): Promise<string> {
  const { processInfo } = await browser.send("SystemInfo.getProcessInfo");
  const sizes = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => privateKbOf(id) / 1_024);
  return Math.max(...sizes).toFixed(0);
}

function privateKbOf(pid: number): number {
  const sums = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8").matchAll(/^Private_(?:Clean|Dirty): +(\d+) kB$/gm);
  return [...sums].reduce((sum, [, kb]) => sum + Number(kb), 0);
}

/** Seconds of processor time by kind of process: the tab (renderer), drawing (GPU), the browser itself. */
async function cpuOf(browser: CDPSession): Promise<Readonly<Record<string, number>>> {
  const { processInfo } = await browser.send("SystemInfo.getProcessInfo");
  const sums: Record<string, number> = {};
  for (const { type, cpuTime } of processInfo) sums[type] = (sums[type] ?? 0) + cpuTime;
  return sums;
}

/** What the tab's main thread and Chromium's processes use while nobody touches the page, as shares of a core. */
async function restingShares(browser: CDPSession, cdp: CDPSession, ms: number): Promise<readonly string[]> {
  const read = async (): Promise<Readonly<Record<string, number>>> => {
    const { metrics } = await cdp.send("Performance.getMetrics");
    const names = ["TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration"];
    const own = Object.fromEntries(metrics.filter(({ name }) => names.includes(name)).map((m) => [m.name, m.value]));
    return { ...own, ...(await cpuOf(browser)) };
  };
  const [before, began] = [await read(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, ms));
  const [after, seconds] = [await read(), (performance.now() - began) / 1_000];
  return Object.entries(after).map(
    ([name, value]) => `${name} ${(((value - (before[name] ?? 0)) / seconds) * 100).toFixed(1)} %`,
  );
}

/** Pages without their drawing, in a process of their own. */
class Readers {
  readonly #child = fork(join(import.meta.dirname, "page-readers.ts"), [String(server.port), String(pagesMany)]);

  /** Resolves with the bytes that they have read so far. */
  async open(isOpen: boolean): Promise<number> {
    const answer = once(this.#child, "message");
    this.#child.send(isOpen);
    const [bytes] = await answer;
    return Number(bytes);
  }

  end(): void {
    this.#child.kill();
  }
}

async function shareOfCore(ms: number): Promise<number> {
  const pid = server.child.pid ?? 0;
  const [cpu, began] = [cpuMsOf(pid), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, ms));
  return (cpuMsOf(pid) - cpu) / (performance.now() - began);
}

type Row = readonly [what: string, value: number, bar: number, unit: string];

/** One page at the eyes of a user: paint, pixels, clicks, memory. */
async function measureTab(): Promise<readonly Row[]> {
  const browser = await openBrowser();
  try {
    const { page, faults } = await openPage(browser, `${url}/`);
    await page.locator(".lane").first().waitFor();
    const paint = Number(
      await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"),
    );
    console.log(`all agents shown after ${Math.round(Number(await page.evaluate("performance.now()")))} ms`);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Performance.enable");
    const pixels = p95(await toPixels(page));
    await page.evaluate("location.hash = '#/now'");
    if (values.profile !== undefined) await startProfile(cdp);
    const clicked = await interactions(page);
    if (values.profile !== undefined) await writeProfile(cdp, values.profile);
    for (const [name, samples] of Object.entries(clicked)) console.log(`  ${name}: p95 ${p95(samples).toFixed(0)} ms`);
    await page.evaluate("location.hash = '#/now'");
    const [before, began] = [cycles, performance.now()];
    const processes = await browser.newBrowserCDPSession();
    let shares: readonly string[] = [];
    for (let left = seconds; left > 0; left -= 60) {
      shares = await restingShares(processes, cdp, Math.min(60, left) * 1_000);
      const heap = (await heapMb(cdp)).toFixed(1);
      console.log(
        `  after ${seconds - Math.max(0, left - 60)} s: heap ${heap} MB, process ${await tabMb(processes)} MB`,
      );
    }
    const rate = (2 * (cycles - before)) / ((performance.now() - began) / 1_000);
    console.log(`load: ${format(Math.round(rate))} events/s; faults in the page: ${faults.length}`);
    console.log(`at rest, of a core: ${shares.join(", ")}`);
    return [
      ["first paint", paint, bars.paintMs, "ms"],
      ["interaction, p95", p95(Object.values(clicked).flat()), bars.interactionMs, "ms"],
      ["event to pixels, p95", pixels, bars.pixelsMs, "ms"],
      [`heap of the tab after ${seconds} s`, await heapMb(cdp), bars.memoryMb, "MB"],
    ];
  } finally {
    await browser.close();
  }
}

async function startProfile(cdp: CDPSession): Promise<void> {
  await cdp.send("Profiler.enable");
  await cdp.send("Profiler.setSamplingInterval", { interval: 500 });
  await cdp.send("Profiler.start");
}

async function writeProfile(cdp: CDPSession, path: string): Promise<void> {
  const { profile } = await cdp.send("Profiler.stop");
  writeFileSync(path, JSON.stringify(profile));
}

const pairs = 6;
const phaseMs = 4_500;
/** After pages are opened or closed, until that itself costs nothing any more. */
const settleMs = 500;

/**
 * What open pages cost the server beside what it does anyway. Phases without and with pages take turns, and each with
 * pages is compared with the mean of its two neighbours: what drifts (memory, compiled code) is in both alike.
 */
async function measureServer(): Promise<readonly Row[]> {
  const readers = new Readers();
  const [alone, both]: [number[], number[]] = [[], []];
  const phase = async (hasPages: boolean): Promise<number> => {
    const bytesBefore = await readers.open(hasPages);
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const [before, began] = [cycles, performance.now()];
    const share = 100 * (await shareOfCore(phaseMs));
    const took = (performance.now() - began) / 1_000;
    const rate = Math.round((2 * (cycles - before)) / took);
    const bytes = hasPages ? (await readers.open(false)) - bytesBefore : 0;
    const got = hasPages
      ? `, each page got ${Math.round(bytes / pagesMany / 1_000 / (took + settleMs / 1_000))} KB/s`
      : "";
    console.log(`  ${hasPages ? `${pagesMany} pages` : "alone   "} ${share.toFixed(1)} %, ${rate} events/s${got}`);
    return share;
  };
  try {
    await phase(true);
    console.log("  that was to warm up, and does not count");
    alone.push(await phase(false));
    for (let pair = 0; pair < pairs; pair++) {
      both.push(await phase(true));
      alone.push(await phase(false));
    }
  } finally {
    readers.end();
  }
  const costs = both.map((share, at) => share - ((alone[at] ?? 0) + (alone[at + 1] ?? 0)) / 2);
  const mean = costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
  const variance = costs.reduce((sum, cost) => sum + (cost - mean) ** 2, 0) / (costs.length - 1);
  const error = Math.sqrt(variance / costs.length);
  const ends = `${Math.min(...costs).toFixed(1)} to ${Math.max(...costs).toFixed(1)} %`;
  console.log(`${pagesMany} pages cost ${mean.toFixed(1)} % of a core, standard error ${error.toFixed(1)} (${ends})`);
  const what = `server's work for ${pagesMany} pages, mean and two standard errors`;
  return [[what, mean + 2 * error, bars.serverShare * 100, "% of a core"]];
}

const loading = Promise.all([load(), keepAlive()]);
try {
  const rows = [
    ...(values.part.includes("tab") ? await measureTab() : []),
    ...(values.part.includes("server") ? await measureServer() : []),
  ];
  for (const [what, value, bar, unit] of rows) {
    const isMet = value <= bar;
    console.log(`${isMet ? "met   " : "MISSED"} ${what}: ${value.toFixed(1)} ${unit} (bar ${bar})`);
    if (!isMet) process.exitCode = 1;
  }
} finally {
  isLoading = false;
  await loading;
  socket.close();
  await server.stop();
  removeFolder(server.dataFolder);
}
