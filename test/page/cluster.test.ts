/** The Cluster screen of two servers on PostgreSQL, with keys; of one server alone it is among the screens of page.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { testCluster, until } from "../postgres/cluster-harness.ts";
import { clientOf } from "../server/harness.ts";
import { assertFits, openBrowser, openPage, takePicture, violationsOf } from "./browser.ts";

test("the page shows who leads, and an operator lets another server lead without losing the page", async (t) => {
  const cluster = await testCluster(t);
  // It ends by a resignation; a slow machine must not end it before.
  const patient = { leaderLeaseMs: 30_000 };
  const first = await cluster.start(patient);
  const { post, get } = clientOf(first.address.url);
  const operator = await newKey("operator");
  const supervisor = await newKey("supervisor", operator);
  const browser = await openBrowser();
  t.after(() => browser.close());

  const { page, faults } = await openPage(browser, `${first.address.url}/`);
  await signIn(page, operator);
  await page.getByRole("link", { name: "Cluster" }).click();
  await page.getByText(/Nobody could take over/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Resign" }).count(), 0, "nobody else could lead");

  const second = await cluster.start(patient);
  const bystander = await cluster.start({ noLead: true });
  await page.getByText(/1 server could take over/).waitFor();
  const rowOf = (url: string) => page.locator(".panel", { hasText: "3 servers" }).locator("tr", { hasText: url });
  await rowOf(first.address.url).getByText("leads", { exact: true }).waitFor();
  await rowOf(first.address.url).getByText("serves this page").waitFor();
  await rowOf(second.address.url).getByText("stands by").waitFor();
  await rowOf(bystander.address.url).getByText("only passes requests on").waitFor();
  assert.equal(await page.getByText("serves this page").count(), 1);
  assert.deepEqual(await leaderShown(page), ["0", first.address.url, "1"]);
  assert.deepEqual(await violationsOf(page), []);
  await assertFits(page, "cluster");
  await takePicture(page, "cluster-of-three");

  const below = await openPage(browser, `${second.address.url}/`, { viewport: { width: 380, height: 760 } });
  await signIn(below.page, supervisor);
  await below.page.evaluate("location.hash = '#/cluster'");
  await below.page.locator("tr", { hasText: second.address.url }).getByText("serves this page").waitFor();
  assert.equal(
    await below.page.getByRole("button", { name: "Resign" }).count(),
    0,
    "a supervisor does not run servers",
  );
  await assertFits(below.page, "cluster, small");
  await takePicture(below.page, "cluster-of-three-small");

  const { schema, query } = cluster.data;
  await query(`INSERT INTO ${schema}.servers (server, url, version, may_lead, seen_at)
    VALUES ('gone', 'http://gone', '1', 1, now() - interval '10 s')`);
  const gone = page.locator("tr", { hasText: "http://gone" });
  await gone.getByText(/silent for \d+ s/).waitFor();
  await page.getByText(/1 server could take over/).waitFor();
  await query(`DELETE FROM ${schema}.servers WHERE server = 'gone'`);
  await gone.waitFor({ state: "detached" });

  await page.getByRole("button", { name: "Resign" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/another server leads within about a second/).waitFor();
  await takePicture(page, "cluster-resign");
  await dialog.getByRole("button", { name: "Let another server lead" }).click();
  await page.getByText("The leader of epoch 1 resigns.").waitFor();
  await until(async () => (await leaderShown(page)).join() === ["0", second.address.url, "2"].join());
  await rowOf(first.address.url).getByText("stands by").waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  const { body } = await get<{ entries: readonly { action: string }[] }>("/v1/audit", { key: operator });
  assert.ok(body.entries.some(({ action }) => action === "resign_leader"));
  assert.deepEqual([...faults, ...below.faults], []);

  async function newKey(role: string, key?: string): Promise<string> {
    return (await post<{ key: string }>("/v1/keys", { role }, { key })).body.key;
  }
});

async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel("Key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Now" }).waitFor();
}

/** Of the first shard: its number, its leader's address, its epoch. */
async function leaderShown(page: Page): Promise<readonly string[]> {
  const cells = page.locator(".panel", { hasText: "1 shard" }).locator("tbody td");
  return (await cells.allTextContents()).slice(0, 3).map((text) => text.trim());
}
