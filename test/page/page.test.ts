/** The page in a real Chromium, against a real server: every screen, every action, each role, and hostile text. */
import assert from "node:assert/strict";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type RunningServer, startServer } from "../../src/server/start.ts";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { type Client, clientOf, until } from "../server/harness.ts";
import { assertFits, openBrowser, openPage, takePicture, violationsOf } from "./browser.ts";
import { type Fleet, startFleet } from "./fleet.ts";

const disk = createMemoryDisk();
let server: RunningServer;
let client: Client;
let browser: Browser;
let fleet: Fleet;
const keys = { operator: "", reader: "", agent: "" };

before(async () => {
  server = await startServer({ port: 0, store: createMemoryStore(disk), shutdownTimeoutMs: 500 });
  client = clientOf(server.address.url);
  for (const role of ["operator", "reader", "agent"] as const) {
    const asked = { role, label: `the ${role}'s` };
    const { body } = await client.post<{ key: string }>("/v1/keys", asked, { key: keys.operator || undefined });
    keys[role] = body.key;
  }
  fleet = await startFleet(client, { key: keys.operator });
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await server?.close();
});

async function open(role: keyof typeof keys, hash = "#/now", options: object = {}) {
  const opened = await openPage(browser, `${server.address.url}/`, options);
  await opened.page.getByLabel("Key").fill(keys[role]);
  await opened.page.getByRole("button", { name: "Sign in" }).click();
  await opened.page.getByRole("heading", { level: 1, name: "Now" }).waitFor();
  if (hash !== "#/now") await go(opened.page, hash);
  return opened;
}

async function go(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
}

function see(page: Page, text: string | RegExp): Promise<void> {
  return page.getByText(text).first().waitFor();
}

/** Each screen, and something that only real data puts there. */
const screens = (): readonly (readonly [name: string, hash: string, seen: string | RegExp])[] => [
  ["now", "#/now", "what it needs is fenced, withdrawn or not ready"],
  ["waits", "#/waits", "not available"],
  ["resources", "#/resources", "3 of 4 units"],
  ["agent", "#/agents/writer", "EXECUTING"],
  ["tasks", "#/tasks", "Package 12"],
  ["task", `#/tasks/${fleet.escalatedTask}`, "Which registry?"],
  ["inbox", "#/inbox", /ann/],
  ["ledger", "#/ledger", "builder.3"],
  ["events", "#/events", "receipt.stored"],
  ["quotas", "#/operating/usage", "foreign obligations"],
  ["keys", "#/operating/keys", "the reader's"],
  ["tenants", "#/operating/tenants", "wait die"],
  ["policies", "#/operating/policies", /rules ·/],
  ["audit", "#/operating/audit", "fence resource"],
];

for (const look of ["light", "dark", "small"] as const) {
  test(`every screen shows the fleet and passes axe (${look})`, async () => {
    const small = { viewport: { width: 380, height: 760 } };
    const options = look === "small" ? small : { colorScheme: look };
    const { page, faults, close } = await open("operator", "#/now", options);
    for (const [name, hash, seen] of screens()) {
      await go(page, hash);
      await see(page, seen);
      if (look !== "small") assert.deepEqual(await violationsOf(page), [], `${name}, ${look}`);
      await assertFits(page, `${name}, ${look}`);
      await takePicture(page, `${name}-${look}`);
    }
    assert.deepEqual(faults, []);
    await close();
  });
}

test("five states are never merged, and an event moves a lane without a reload", async () => {
  const { page, close } = await open("operator");
  const stateOf = (agent: string) => page.locator(".lane", { hasText: agent }).locator(".lane-state");
  for (const [agent, words] of [
    ["writer", "working"],
    ["planner", "blocked"],
    ["reviewer", "waits for a person"],
    ["migrator", "lost"],
  ] as const) {
    await stateOf(agent).getByText(words).waitFor();
  }
  await page.evaluate("globalThis.isSamePage = true");
  await client.post("/v1/agents", { agent_id: "newcomer" }, { key: keys.operator });
  await stateOf("newcomer").getByText("idle").waitFor();
  const intents = [{ predicate: "MUTATES", resource: "FILE:/docs/a.md" }];
  await client.post("/v1/acquire", { agent_id: "newcomer", intents, ttl_ms: 300_000 }, { key: keys.operator });
  await stateOf("newcomer").getByText("working").waitFor();
  await page.locator(".lane", { hasText: "newcomer" }).getByText("/docs/a.md").waitFor();

  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("paused", { exact: true }).waitFor();
  await client.post("/v1/release", { agent_id: "newcomer" }, { key: keys.operator });
  await client.post("/v1/agents", { agent_id: "unseen" }, { key: keys.operator });
  assert.equal(await page.locator(".lane", { hasText: "unseen" }).count(), 0, "what is paused stands still");
  await page.getByRole("button", { name: "Go on" }).click();
  await stateOf("unseen").getByText("idle").waitFor();
  await page.locator(".tile", { hasText: "blocked" }).click();
  await until(async () => (page.url().includes("activity=blocked") ? true : null), "the address is the state");
  await page.locator(".lane", { hasText: "writer" }).waitFor({ state: "detached" });
  assert.equal(await page.evaluate("globalThis.isSamePage"), true);
  await close();
});

/** Opens a dialog, reads what it says, fills it in and confirms. */
async function confirm(page: Page, button: string, title: string, says: RegExp, fields: Record<string, string> = {}) {
  await page.locator(".screen").getByRole("button", { name: button, exact: true }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(says).waitFor();
  for (const [name, value] of Object.entries(fields)) {
    const field = dialog.locator(`[name=${name}]`);
    if ((await field.evaluate((element) => element.tagName)) === "SELECT") await field.selectOption(value);
    else await field.fill(value);
  }
  await dialog.getByRole("button", { name: title }).click();
  await dialog.waitFor({ state: "detached" });
}

test("S7: each action is confirmed with its consequence, takes effect, and is in the audit log", async () => {
  const { page, faults, close } = await open("operator");
  const auditedBefore = await auditedActions();
  await go(page, "#/agents/fixer");
  await confirm(page, "Pause", "Pause the agent", /keeps what it holds/);
  await page.getByRole("button", { name: "Unpause" }).waitFor();
  await confirm(page, "Unpause", "Unpause the agent", /may acquire again/);
  await confirm(page, "Revoke", "Revoke the lease", /fixer loses FILE:\/shop\/src\/auth\/login.ts/, {
    reason: "by hand",
  });
  await see(page, "Holds 0");
  await go(page, "#/agents/tester");
  await confirm(page, "Release", "Release the lease", /becomes free as if its holder had finished/);
  await see(page, "Holds 0");
  await go(page, "#/agents/writer");
  await confirm(page, "Revoke all leases", "Revoke all its leases", /loses everything/, { reason: "by hand" });

  await go(page, "#/resources?state=FENCED");
  await page.locator(".tree-row", { hasText: "fenced" }).click();
  await confirm(page, "Reset", "Reset the resource", /Then it can be leased again/);
  await go(page, "#/resources?q=GPU");
  await page.getByTitle("GPU:/lab/0").click();
  await confirm(page, "Fence", "Fence the resource", /Nothing is leased on GPU:\/lab\/0/, { reason: "noise" });

  await go(page, `#/tasks/${fleet.taskIds.at(-1)}`);
  await confirm(page, "Cancel", "Cancel the task", /A queued task ends at once/);
  await see(page, "canceled");
  await go(page, "#/tasks?type=review&status=queued");
  await see(page, "Package 9");
  await confirm(page, "Cancel all that match", "Cancel all that match", /on this page or not/);
  await see(page, /2 of 2 done/);
  await go(page, "#/inbox?custodian=ann");
  await confirm(page, "Answer", "Answer and close", /Receipts cannot be taken back/, {
    status: "success",
    text: "the blue one",
  });
  await see(page, "Nobody owes anything.");
  const audited = (await auditedActions()).slice(auditedBefore.length);
  for (const action of ["pause_agent", "unpause_agent", "revoke", "reset_resource", "fence_resource", "cancel_task"]) {
    assert.ok(audited.includes(action), `${action} is in ${audited}`);
  }
  assert.deepEqual(faults, []);
  await close();
});

async function auditedActions(): Promise<readonly string[]> {
  const { body } = await client.get<{ entries: { action: string }[] }>("/v1/audit?limit=1000", { key: keys.operator });
  return body.entries.map(({ action }) => action);
}

test("S5: the key is kept nowhere in the browser, and a reader's page has no actions", async () => {
  const { page, close } = await open("reader");
  const context = page.context();
  const [cookie] = await context.cookies(`${server.address.url}/v1/`);
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, "Strict", "/v1"]);
  const stored = await page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])");
  assert.equal(stored, '[{},{},""]');
  assert.ok(!(await page.content()).includes(keys.reader));
  for (const [name, hash] of screens()) {
    await go(page, hash);
    await page.getByRole("heading", { level: 1 }).waitFor();
    assert.equal(
      await page.locator(".screen .button:not(.solid)", { hasNotText: /^(Export|Close|Back to now)$/ }).count(),
      0,
      name,
    );
  }
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Key").waitFor();
  await close();
  const { body } = await client.post<{ agent_token: string }>(
    "/v1/agents",
    { agent_id: "seeing" },
    { key: keys.agent },
  );
  const agent = await openPage(browser, `${server.address.url}/`);
  await agent.page.getByLabel("Key").fill(body.agent_token);
  await agent.page.getByRole("button", { name: "Sign in" }).click();
  await agent.page.locator(".lane").first().waitFor();
  await see(agent.page, /agent · default/);
  assert.deepEqual(agent.faults, []);
  await agent.close();
});

/** Markup, code, templates, and a word that does not break: as text they are harmless. */
const hostile = `"><img src=x onerror=alert(1)><script>alert(2)</script>${"W".repeat(80)}{{1}}\${2}`.replace(
  "\u0000",
  "",
);

test("hostile text in every field that is shown runs nothing and breaks no layout", async () => {
  await client.post("/v1/tenants", { tenant_id: "hostile" }, { key: keys.operator });
  const as = { key: keys.operator, tenant: "hostile" };
  await startFleet(client, as, hostile.replaceAll(/[\s/*?]/g, "_").slice(0, 120));
  for (const options of [{}, { viewport: { width: 380, height: 760 } }]) {
    const { page, faults, close } = await open("operator", "#/operating/tenants", options);
    await page.locator("tr", { hasText: "hostile" }).getByRole("button", { name: "Show" }).click();
    for (const [name, hash] of screens()) {
      await go(page, name === "task" ? "#/tasks" : hash);
      await page.getByRole("heading", { level: 1 }).waitFor();
      if (["tasks", "resources"].includes(name)) await see(page, /onerror/);
      await assertFits(page, name);
      assert.equal(await page.locator("img, script:not([src])").count(), 0, name);
      if (name === "now" || name === "tasks")
        await takePicture(page, `hostile-${name}${"viewport" in options ? "-small" : ""}`);
    }
    assert.deepEqual(faults, []);
    await close();
  }
});

test("R6: receipts and the head are verified in the browser, and a changed one is found", async () => {
  const { page, faults, close } = await open("reader", "#/ledger");
  await page.getByRole("button", { name: "Verify here" }).click();
  await see(page, /receipts follow each other, and the head's signature is right/);
  await page.route("**/v1/receipts?**", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace('"built"', '"forged"') });
  });
  await page.getByRole("button", { name: "Verify here" }).click();
  await see(page, /Receipt 2 was changed/);
  await go(page, `#/tasks/${fleet.taskIds[0]}`);
  await page.getByText("verified", { exact: true }).first().waitFor();
  assert.equal(await page.getByText("not verified").count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test("the page works behind a proxy that serves it under a prefix", async () => {
  const target = new URL(server.address.url);
  const proxy = createServer((incoming, outgoing) => {
    const path = incoming.url?.replace(/^\/lease\/hold\//, "/") ?? "/";
    const { host } = incoming.headers;
    const forwarded = httpRequest(
      {
        host: target.hostname,
        port: target.port,
        path,
        method: incoming.method,
        headers: { ...incoming.headers, host },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    outgoing.on("close", () => forwarded.destroy());
    forwarded.on("error", () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((done) => proxy.listen(0, "127.0.0.1", done));
  const { port } = proxy.address() as AddressInfo;
  const { page, faults, close } = await openPage(browser, `http://127.0.0.1:${port}/lease/hold/`);
  await page.getByLabel("Key").fill(keys.reader);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".lane").first().waitFor();
  await see(page, "live");
  const cookies = await page.context().cookies(`http://127.0.0.1:${port}/lease/hold/v1/`);
  assert.deepEqual(
    cookies.map(({ path }) => path),
    ["/lease/hold/v1"],
  );
  assert.deepEqual(faults, []);
  await close();
  proxy.closeAllConnections();
  proxy.close();
});

test("after a restart of the server the page comes back by itself, with what happened meanwhile", async () => {
  const { page, close } = await open("operator");
  await page.locator(".lane").first().waitFor();
  const { port } = server.address;
  await server.close();
  await see(page, /not connected/);
  server = await startServer({ port, store: createMemoryStore(disk), shutdownTimeoutMs: 500 });
  await client.post("/v1/agents", { agent_id: "after-restart" }, { key: keys.operator });
  await page.locator(".lane", { hasText: "after-restart" }).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  await close();
});
