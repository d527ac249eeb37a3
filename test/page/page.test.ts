/** The page in a real Chromium, against a real server: every screen, what moves on it, and hostile text. */
import assert from "node:assert/strict";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { until } from "../server/harness.ts";
import { assertFits, openPage, pictures, takePicture, violationsOf } from "./browser.ts";
import { startFleet } from "./fleet.ts";
import { go, laneOf, open, screens, see, setting, useSetting } from "./setting.ts";

useSetting();

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
    console.log(`pictures of every screen (${look}): ${pictures}`);
    assert.deepEqual(faults, []);
    await close();
  });
}

test("who is in the way is said on the lane, on the edge, and with both manifests", async () => {
  const { page, faults, close } = await open("operator");
  // One stands by from here on: the fleet's may have waited out its time on a slow machine.
  const as = { key: setting().keys.operator };
  await setting().client.post("/v1/agents", { agent_id: "auditor" }, as);
  const intents = [{ predicate: "MUTATES", resource: "FILE:/shop/src/auth/login.ts" }];
  await setting().client.post("/v1/acquire", { agent_id: "auditor", intents, standby_ms: 55_000 }, as);
  await laneOf(page, "planner")
    .getByText(/behind writer · gives up in \d/)
    .waitFor();
  await laneOf(page, "refactorer")
    .getByText(/gave way to writer on/)
    .waitFor();
  await go(page, "#/waits");
  await page
    .locator(".graph-edge", { hasText: /waits in line · \d:\d\d/ })
    .first()
    .waitFor();
  await page.locator(".graph-edge", { hasText: "stands by · " }).first().waitFor();
  await page.locator(".graph-node.other", { hasText: "a person" }).waitFor();
  await page.locator(".edge", { hasText: "planner" }).click();
  const panel = page.locator(".panel", { hasText: "What would free it" });
  await panel.getByText("plan discounts").waitFor();
  await panel.getByText("rename addItem()").first().waitFor();
  // The rest of what the holder has is part of its manifest.
  await panel.getByTitle("FILE:/shop/src/checkout/total.ts").waitFor();
  await go(page, "#/waits?resource=FILE:/shop/src/auth/**");
  await page.locator(".edge", { hasText: "auditor" }).waitFor();
  await page.locator(".edge", { hasText: "planner" }).waitFor({ state: "detached" });
  assert.deepEqual(faults, []);
  await close();
});

test("filters of tasks are chips, with suggestions, and the address is the state", async () => {
  const { page, close } = await open("reader", "#/tasks");
  await see(page, "Package 12");
  const field = page.locator(".filter-bar input");
  await until(async () => {
    const offered = await page
      .locator("#filters option")
      .evaluateAll((all) => all.map((one) => one.getAttribute("value")));
    return ["type:review", "principal:planner", "worker:builder.3"].every((one) => offered.includes(one)) ? true : null;
  }, "suggestions");
  await field.fill("type:review");
  await page.locator(".chip.filter", { hasText: "review" }).waitFor();
  await page.getByText("Package 5").waitFor({ state: "detached" });
  await field.fill("part body 9");
  await field.fill("body 9");
  await field.press("Enter");
  await page.getByText("Package 12").waitFor({ state: "detached" });
  await see(page, "Package 9");
  assert.match(page.url(), /type=review&q=body\+9/);
  await page.getByRole("button", { name: "No longer filter by q" }).click();
  await see(page, "Package 12");
  await close();
});

test("the scrubber shows who held and who waited then, and older events are read back", async () => {
  const { page, faults, close } = await open("reader");
  const then = Date.now();
  await go(page, `#/events?at=${then}`);
  await see(page, /leases were held/);
  const moment = page.locator(".panel", { hasText: "Held and waiting at" });
  await moment.getByText("complete", { exact: true }).waitFor();
  await moment.locator("li", { hasText: "cart.ts" }).first().waitFor();
  await moment.locator("li", { hasText: "planner" }).getByText("waits still").waitFor();
  await page.getByRole("button", { name: "Back to now" }).click();
  await moment.waitFor({ state: "detached" });
  await go(page, "#/events?type=agent.registered");
  await see(page, "agent.registered");
  await page.getByText("lease.granted", { exact: true }).waitFor({ state: "detached" });
  assert.deepEqual(faults, []);
  await close();
});

test("five states are never merged, and an event moves a lane without a reload", async () => {
  const { page, close } = await open("operator");
  const stateOf = (agent: string) => laneOf(page, agent).locator(".lane-state");
  for (const [agent, words] of [
    ["writer", "working"],
    ["planner", "blocked"],
    ["reviewer", "waits for a person"],
    ["migrator", "lost"],
  ] as const) {
    await stateOf(agent).getByText(words).waitFor();
  }
  await page.evaluate("globalThis.isSamePage = true");
  await setting().client.post("/v1/agents", { agent_id: "newcomer" }, { key: setting().keys.operator });
  await stateOf("newcomer").getByText("idle").waitFor();
  const intents = [{ predicate: "MUTATES", resource: "FILE:/docs/a.md" }];
  await setting().client.post(
    "/v1/acquire",
    { agent_id: "newcomer", intents, ttl_ms: 300_000 },
    { key: setting().keys.operator },
  );
  await stateOf("newcomer").getByText("working").waitFor();
  await page.locator(".lane", { hasText: "newcomer" }).getByText("/docs/a.md").waitFor();

  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("paused", { exact: true }).waitFor();
  await setting().client.post("/v1/release", { agent_id: "newcomer" }, { key: setting().keys.operator });
  await setting().client.post("/v1/agents", { agent_id: "unseen" }, { key: setting().keys.operator });
  assert.equal(await page.locator(".lane", { hasText: "unseen" }).count(), 0, "what is paused stands still");
  await page.getByRole("button", { name: "Go on" }).click();
  await stateOf("unseen").getByText("idle").waitFor();
  await page.locator(".tile", { hasText: "blocked" }).click();
  await until(async () => (page.url().includes("activity=blocked") ? true : null), "the address is the state");
  await page.locator(".lane-who", { hasText: "writer" }).waitFor({ state: "detached" });
  assert.equal(await page.evaluate("globalThis.isSamePage"), true);
  await close();
});

/** Markup, code, templates, and a word that does not break: as text they are harmless. */
const hostile = `"><img src=x onerror=alert(1)><script>alert(2)</script>${"W".repeat(80)}{{1}}\${2}`.replace(
  "\u0000",
  "",
);

test("hostile text in every field that is shown runs nothing and breaks no layout", async () => {
  await setting().client.post("/v1/tenants", { tenant_id: "hostile" }, { key: setting().keys.operator });
  const as = { key: setting().keys.operator, tenant: "hostile" };
  await startFleet(setting().client, as, hostile.replaceAll(/[\s/*?]/g, "_").slice(0, 120));
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
  await go(page, `#/tasks/${setting().fleet.taskIds[0]}`);
  await page.getByText("verified", { exact: true }).first().waitFor();
  assert.equal(await page.getByText("not verified").count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test("the page works behind a proxy that serves it under a prefix", async () => {
  const target = new URL(setting().server.address.url);
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
  const { page, faults, close } = await openPage(setting().browser, `http://127.0.0.1:${port}/lease/hold/`);
  await page.getByLabel("Key").fill(setting().keys.reader);
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
  const { port } = setting().server.address;
  await setting().server.close();
  await see(page, /not connected/);
  await setting().restart(port);
  await setting().client.post("/v1/agents", { agent_id: "after-restart" }, { key: setting().keys.operator });
  await page.locator(".lane", { hasText: "after-restart" }).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  await close();
});
