/** A real Chromium for the tests of the page, and what must never happen in it. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import chromium from "@sparticuz/chromium";
import {
  type Browser,
  type BrowserContextOptions,
  chromium as driver,
  type LaunchOptions,
  type Page,
} from "playwright-core";

const launchAttempts = 60;
const launchPauseMs = 500;

/** Pictures of the run, to be looked at: kept when it is over, and replaced by those of the next. */
export const pictures = join(
  tmpdir(),
  `leasehold-page-${process.env["LEASEHOLD_TEST_STORE"] === "postgres" ? "postgres" : "sqlite"}`,
);

export async function openBrowser(): Promise<Browser> {
  return launch({
    // Chromium's own rules for pages stay as they are for users.
    args: chromium.args.filter((arg) => !/web-security|insecure|single-process/.test(arg)),
    headless: true,
  });
}

/** Test files run at once, and the first of them unpacks the program: until it is whole, the others cannot start it. */
export async function launch(options: LaunchOptions): Promise<Browser> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await driver.launch({ ...options, executablePath: await chromium.executablePath() });
    } catch (error) {
      if (attempt === launchAttempts || !/ETXTBSY/.test(String(error))) throw error;
      await sleep(launchPauseMs);
    }
  }
}

export interface OpenPage {
  readonly page: Page;
  /** What went wrong in the page: errors, refused loads, violations of the policy. */
  readonly faults: readonly string[];
  close(): Promise<void>;
}

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text()))
      faults.push(message.text());
  });
  page.on("dialog", (dialog) => {
    faults.push(`a script ran: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  return { page, faults, close: () => context.close() };
}

export async function takePicture(page: Page, name: string): Promise<void> {
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** WCAG 2 A and AA by axe. Its script is evaluated by the driver, which the page's policy does not bind. */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate("'axe' in globalThis")))
    await page.evaluate(readFileSync("node_modules/axe-core/axe.min.js", "utf8"));
  const found = await page.evaluate(
    async (only) => {
      const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: unknown[] }> } };
      return (await axe.run({ runOnly: only })).violations;
    },
    ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
  );
  return (found as readonly Violation[]).map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .map(({ html, failureSummary }) => `${html} ${failureSummary ?? ""}`)
        .join(" | ")
        .slice(0, 600)}`,
  );
}

/** Nothing is wider than the window: what is long is cut or wraps. */
export async function assertFits(page: Page, where: string): Promise<void> {
  const { width, most } = (await page.evaluate(
    "({ width: innerWidth, most: document.documentElement.scrollWidth })",
  )) as { width: number; most: number };
  assert.ok(most <= width, `${where}: ${most} px in a window of ${width}`);
}
