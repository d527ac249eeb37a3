/** What tests of the page share: a server with a fleet and a key for each role, and a browser. */
import { after, before } from "node:test";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { type RunningServer, startServer } from "../../src/server/start.ts";
import { type Client, clientOf } from "../server/harness.ts";
import { type OpenPage, openBrowser, openPage } from "./browser.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { keepData } from "./stores.ts";

const roles = ["operator", "reader", "agent"] as const;
export type PageRole = (typeof roles)[number];

export interface Setting {
  server: RunningServer;
  readonly client: Client;
  readonly browser: Browser;
  readonly fleet: Fleet;
  readonly keys: Readonly<Record<PageRole, string>>;
  /** The same data, at the same address. */
  restart(port: number): Promise<void>;
  end(): Promise<void>;
}

let current: Setting | null = null;

/** Of the file's tests, which begin with it. */
export function setting(): Setting {
  if (current === null) throw new Error("useSetting() comes first");
  return current;
}

/** Begun before the first test of a file, and ended after the last. */
export function useSetting(): void {
  before(async () => {
    current = await begin();
  });
  after(() => current?.end());
}

async function begin(): Promise<Setting> {
  const kept = await keepData();
  const server = await startServer({ port: 0, ...kept.options });
  const client = clientOf(server.address.url);
  const keys = { operator: "", reader: "", agent: "" };
  for (const role of roles) {
    const asked = { role, label: `the ${role}'s` };
    const { body } = await client.post<{ key: string }>("/v1/keys", asked, { key: keys.operator || undefined });
    keys[role] = body.key;
  }
  const fleet = await startFleet(client, { key: keys.operator });
  const browser = await openBrowser();
  const begun: Setting = {
    ...{ server, client, browser, fleet, keys },
    restart: async (port) => {
      begun.server = await startServer({ port, ...kept.options });
    },
    end: async () => {
      await browser.close();
      await begun.server.close();
      await kept.remove();
    },
  };
  return begun;
}

/** Signed in, with a key of this role. */
export async function open(role: PageRole, hash = "#/now", options: BrowserContextOptions = {}): Promise<OpenPage> {
  const { browser, server, keys } = setting();
  const opened = await openPage(browser, `${server.address.url}/`, options);
  await opened.page.getByLabel("Key").fill(keys[role]);
  await opened.page.getByRole("button", { name: "Sign in" }).click();
  await opened.page.getByRole("heading", { level: 1, name: "Now" }).waitFor();
  if (hash !== "#/now") await go(opened.page, hash);
  return opened;
}

export async function go(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
}

export function see(page: Page, text: string | RegExp): Promise<void> {
  return page.getByText(text).first().waitFor();
}

/** By its own name: lanes name others too. */
export function laneOf(page: Page, agent: string): Locator {
  return page.locator(".lane", { has: page.locator(".lane-who", { hasText: agent }) });
}

/** Each screen, and something that only real data puts there. */
export const screens = (): readonly (readonly [name: string, hash: string, seen: string | RegExp])[] => [
  ["now", "#/now", "what it needs is fenced, withdrawn or not ready"],
  ["waits", "#/waits", "not available"],
  ["resources", "#/resources", "3 of 4 units"],
  ["agent", "#/agents/writer", "EXECUTING"],
  ["tasks", "#/tasks", "Package 12"],
  ["task", `#/tasks/${setting().fleet.escalatedTask}`, "Which registry?"],
  ["inbox", "#/inbox", /ann/],
  ["ledger", "#/ledger", "builder.3"],
  ["events", "#/events", "receipt.stored"],
  ["cluster", "#/cluster", /serves this page/],
  ["quotas", "#/operating/usage", "foreign obligations"],
  ["keys", "#/operating/keys", "the reader's"],
  ["tenants", "#/operating/tenants", "wait die"],
  ["policies", "#/operating/policies", /rules ·/],
  ["audit", "#/operating/audit", "fence resource"],
];
