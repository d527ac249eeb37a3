/** What each role can do on the page, and that a reader's has nothing to do it with. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { until } from "../server/harness.ts";
import { openPage } from "./browser.ts";
import { go, open, screens, see, setting, useSetting } from "./setting.ts";

useSetting();

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

/** Before the actions below: they take away what these screens show. */
test("S5: the key is kept nowhere in the browser, and a reader's page has no actions", async () => {
  const { page, close } = await open("reader");
  const context = page.context();
  const [cookie] = await context.cookies(`${setting().server.address.url}/v1/`);
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, "Strict", "/v1"]);
  const stored = await page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])");
  assert.equal(stored, '[{},{},""]');
  assert.ok(!(await page.content()).includes(setting().keys.reader));
  for (const [name, hash, seen] of screens()) {
    await go(page, hash);
    // What it shows, or that a reader may not see it: before that, nobody's page has anything to do.
    await page.getByText(seen).or(page.locator(".screen .error")).first().waitFor();
    assert.equal(
      await page.locator(".screen .button:not(.solid)", { hasNotText: /^(Export|Close|Back to now)$/ }).count(),
      0,
      name,
    );
  }
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Key").waitFor();
  await close();
  const { body } = await setting().client.post<{ agent_token: string }>(
    "/v1/agents",
    { agent_id: "seeing" },
    { key: setting().keys.agent },
  );
  const agent = await openPage(setting().browser, `${setting().server.address.url}/`);
  await agent.page.getByLabel("Key").fill(body.agent_token);
  await agent.page.getByRole("button", { name: "Sign in" }).click();
  await agent.page.locator(".lane").first().waitFor();
  await see(agent.page, /agent · default/);
  assert.deepEqual(agent.faults, []);
  await agent.close();
});

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

  await go(page, `#/tasks/${setting().fleet.taskIds.at(-1)}`);
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

  const overdue = await acceptLate("late");
  await until(async () => {
    const { body } = await setting().client.get<{ obligations: { task_id: string }[] }>(
      "/v1/obligations?state=OVERDUE",
      {
        key: setting().keys.operator,
      },
    );
    return body.obligations.some(({ task_id }) => task_id === overdue) ? true : null;
  }, "the lease of a worker that went away ends");
  await go(page, "#/inbox?state=OVERDUE");
  await see(page, /recover it for somebody else, or answer for it/);
  await confirm(page, "Recover", "Give it a new custodian", /answers for it from now on/, {
    custodian: "bea",
    reason: "by hand",
  });
  await go(page, "#/inbox?custodian=bea");
  await see(page, /owes planner/);

  await escalate("doomed-1");
  await escalate("doomed-2");
  await go(page, "#/tasks?status=dead&type=doomed-1");
  await page.locator(".task-row").click();
  await confirm(page, "Redrive", "Redrive the task", /leaves the dead letters/);
  await see(page, "queued");
  await go(page, "#/tasks?status=dead&type=doomed-2");
  await page.locator(".task-row").waitFor();
  await confirm(page, "Redrive all that match", "Redrive all that match", /Every dead letter/);
  await see(page, /1 of 1 done/);
  const audited = (await auditedActions()).slice(auditedBefore.length);
  const expected = ["pause_agent", "unpause_agent", "revoke", "reset_resource", "fence_resource", "cancel_task"];
  for (const action of [...expected, "recover_obligation", "redrive_task"]) {
    assert.ok(audited.includes(action), `${action} is in ${audited}`);
  }
  assert.deepEqual(faults, []);
  await close();
});

async function send<T>(path: string, body: object): Promise<T> {
  return (await setting().client.post<T>(path, body, { key: setting().keys.operator })).body;
}

interface Polled {
  readonly lease_id: string;
  readonly task: { readonly task_id: string };
}

/** Urgent, so that the next poll gets it: its worker is not heard of again. */
async function acceptLate(type: string): Promise<string> {
  const task = { task_type: type, principal_ai: "planner", task_priority: 100, lease_duration_ms: 1_000 };
  await send("/v1/tasks", { ...task, requeue_delay_ms: 60_000 });
  const polled = await send<Polled>("/v1/lease", { worker_id: `${type}.1` });
  await send("/v1/receipts", { phase: "accepted", lease_id: polled.lease_id });
  return polled.task.task_id;
}

/** Its worker gives up, and it is a dead letter. */
async function escalate(type: string): Promise<void> {
  await send("/v1/tasks", { task_type: type, principal_ai: "planner", task_priority: 100 });
  const { lease_id } = await send<Polled>("/v1/lease", { worker_id: `${type}.1` });
  await send("/v1/receipts", { phase: "accepted", lease_id });
  const why = { escalation_class: "owner", escalation_reason: "which?", escalation_to: "ann", recipient_ai: "ann" };
  await send("/v1/receipts", { phase: "escalate", lease_id, ...why });
}

async function auditedActions(): Promise<readonly string[]> {
  const { body } = await setting().client.get<{ entries: { action: string }[] }>("/v1/audit?limit=1000", {
    key: setting().keys.operator,
  });
  return body.entries.map(({ action }) => action);
}
