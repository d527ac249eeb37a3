/** Every figure of docs/page.md is read from the page and with the call beside it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { serve, until } from "../server/harness.ts";
import { openBrowser, openPage } from "./browser.ts";
import { startFleet } from "./fleet.ts";

/** Where the page shows it: the screen, and what is there. A moment is filled in for `…`. */
const tile = (name: string): readonly [string, string] => ["#/now", `.tile.${name} b`];
const figure = (name: string): readonly [string, string] => ["#/now", `.figures a:has-text("${name}") b`];
const places: Readonly<Record<string, readonly [hash: string, selector: string]>> = {
  working: tile("working"),
  blocked: tile("blocked"),
  "waits for a person": tile("waiting_for_person"),
  idle: tile("idle"),
  lost: tile("lost"),
  leases: figure("leases"),
  "tasks queued": figure("tasks queued"),
  "at work": figure("at work"),
  workers: figure("workers"),
  "dead letters": figure("dead letters"),
  fenced: figure("fenced"),
  "open obligations": ["#/inbox", ".chip.working b"],
  "overdue obligations": ["#/inbox", ".chip.lost b"],
  "who waits": ["#/waits", ".strip .quiet b"],
  "leases of an agent": ["#/agents/writer", "h2:has-text('Holds')"],
  "requests of an agent": ["#/agents/planner", "h2:has-text('Asks for')"],
  receipts: ["#/ledger", ".facts div:has(dt:has-text('Receipts')) dd"],
  servers: ["#/cluster", "h2:has-text('server')"],
  shards: ["#/cluster", "h2:has-text('shard')"],
  "epoch of the first shard": ["#/cluster", ".panel:has-text('Epoch') tbody td >> nth=2"],
  "leases held at a moment": ["#/events?at=…", ".pair h3 >> nth=0"],
  "who waited at a moment": ["#/events?at=…", ".pair h3 >> nth=1"],
};

const documented = [
  ...readFileSync("docs/page.md", "utf8").matchAll(/^\| ([^|]+) \| `GET (\/v1\/[^`]+)` \| `([^`]+)` \|$/gm),
].map(([, name = "", path = "", member = ""]) => ({ name, path, member }));

test("every figure on the page can be got with one documented call", async (t) => {
  assert.deepEqual(
    documented.map(({ name }) => name).sort(),
    Object.keys(places).sort(),
    "docs/page.md has all of them",
  );
  const server = await serve(t);
  const { address, get } = server;
  await startFleet(server);
  const browser = await openBrowser();
  t.after(() => browser.close());
  const { page, faults } = await openPage(browser, `${address.url}/`);
  const moment = Date.now();
  for (const { name, path, member } of documented) {
    const [hash, selector] = places[name] ?? ["", ""];
    await page.evaluate(`location.hash = ${JSON.stringify(hash.replace("…", String(moment)))}`);
    // Both change while the fleet settles: they must come to be the same.
    await until(async () => {
      const { body } = await get<Record<string, unknown>>(path.replace("…", new Date(moment).toISOString()));
      return (await numberAt(page, selector)) === sumOf(body, member) ? true : null;
    }, `${name}: ${path} ${member}`);
  }
  assert.deepEqual(faults, []);
});

async function numberAt(page: Page, selector: string): Promise<number | null> {
  const text = (await page.locator(selector).first().allTextContents()).join("");
  const [digits] = /\d[\d,]*/.exec(text) ?? [];
  return digits === undefined ? null : Number(digits.replaceAll(",", ""));
}

/** `a.b + c.d`; a list counts its members. */
function sumOf(body: Readonly<Record<string, unknown>>, member: string): number {
  return member.split(" + ").reduce((sum, path) => {
    const value = path.split(".").reduce<unknown>((part, name) => (part as Record<string, unknown>)[name], body);
    assert.ok(typeof value === "number" || Array.isArray(value), path);
    return sum + (typeof value === "number" ? value : value.length);
  }, 0);
}
