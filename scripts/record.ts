/**
 * Plays the demo and records it for the README: `leasehold top` as an animated SVG, and screens of the page as PNG.
 *
 *   npm run record [-- --seconds 45] [-- --out docs/images]
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createPaint } from "../src/cli/paint.ts";
import { RateMeter, takeSnapshot } from "../src/cli/top/model.ts";
import { arrange, rowsOf } from "../src/cli/top/rows.ts";
import { firstChoice } from "../src/cli/top/state.ts";
import { view } from "../src/cli/top/view.ts";
import { playDemo } from "../src/demo/demo.ts";
import { createClient } from "../src/sdk/index.ts";
import { openBrowser } from "../test/page/browser.ts";
import { drawTerminal, type Frame } from "./recording/terminal-svg.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "45" },
    out: { type: "string", default: "docs/images" },
    seed: { type: "string", default: "1" },
  },
});
/** The fleet has something of everything by then. */
const leadSeconds = 12;
const secondsEach = 1.5;
const size = { columns: 104, rows: 28 };
/** What the page is shown as, and the file's name. */
const screens = [
  ["now", "#/now"],
  ["waits", "#/waits"],
  ["resources", "#/resources"],
  ["tasks", "#/tasks"],
] as const;

const seconds = Number(values.seconds);
if (!(seconds > leadSeconds)) {
  console.error(`record: --seconds is a number above ${leadSeconds}.`);
  process.exit(2);
}
mkdirSync(values.out, { recursive: true });
const over = new AbortController();
const begun = Promise.withResolvers<string>();
const played = playDemo({
  port: 0,
  seed: Number(values.seed),
  signal: over.signal,
  say: (sentence) => console.log(sentence),
  begun: begun.resolve,
});
played.catch(begun.reject);
const url = await begun.promise;
try {
  const frames = await recordTop(url);
  // An address of the day would only distract.
  const lines = frames.map((frame) => ({
    lines: frame.lines.map((line) => line.replaceAll(url, "http://127.0.0.1:7117")),
  }));
  writeFileSync(join(values.out, "demo.svg"), drawTerminal("leasehold top", lines, secondsEach));
  await takePictures(url);
} finally {
  over.abort();
  await played;
}
console.log(`record: wrote demo.svg and ${screens.map(([name]) => `page-${name}.png`).join(", ")} to ${values.out}`);

async function recordTop(address: string): Promise<readonly Frame[]> {
  const client = createClient({ url: address });
  const meter = new RateMeter(performance.now());
  const following = new AbortController();
  void meter.follow(client, (await takeSnapshot(client)).overview.sequence, following.signal);
  await sleep(leadSeconds * 1_000);
  const frames: Frame[] = [];
  const paint = createPaint(true);
  const end = performance.now() + (seconds - leadSeconds) * 1_000;
  while (performance.now() < end) {
    const snapshot = await takeSnapshot(client);
    const rows = arrange(rowsOf(snapshot), firstChoice.sort, "");
    const now = performance.now();
    const seen = { url: address, snapshot, rows, rates: meter.rates(now), trouble: null, now };
    frames.push({ lines: view(seen, firstChoice, size, paint) });
    await sleep(secondsEach * 1_000);
  }
  following.abort();
  await client.close();
  return frames;
}

async function takePictures(address: string): Promise<void> {
  const browser = await openBrowser();
  try {
    const context = await browser.newContext({ viewport: { width: 1_280, height: 800 }, colorScheme: "light" });
    const page = await context.newPage();
    for (const [name, path] of screens) {
      await page.goto(`${address}/${path}`);
      await page.locator("main").waitFor();
      // A few events, so that bars and sparklines have moved.
      await sleep(3_000);
      await page.screenshot({ path: join(values.out, `page-${name}.png`) });
    }
  } finally {
    await browser.close();
  }
}
