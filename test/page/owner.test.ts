/** S5: the page of a server that is its owner's alone, in a real Chromium. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findOwner } from "../../src/trust/owner-token.ts";
import { serve } from "../server/harness.ts";
import { openBrowser, openPage } from "./browser.ts";

test("S5: with --owner-only the page opens with the owner's link alone, once, and not for another browser", async (t) => {
  const client = await serve(t, { ownerOnly: true });
  const { url } = client.address;
  const owner = findOwner(url, process.env);
  assert.ok(owner !== null);
  await client.post("/v1/agents", { agent_id: "secret-agent" }, { key: owner.token });
  const intents = [{ predicate: "MUTATES", resource: "FILE:/secret.ts" }];
  const held = await client.post("/v1/acquire", { agent_id: "secret-agent", intents }, { key: owner.token });
  assert.equal(held.status, 200, held.text);
  const browser = await openBrowser();
  t.after(() => browser.close());

  const stranger = await openPage(browser, url);
  await stranger.page.getByText("leasehold open").first().waitFor();
  assert.doesNotMatch(await stranger.page.content(), /secret-agent/);

  const { body } = await client.post<{ path: string }>("/v1/session/link", {}, { key: owner.token });
  const own = await openPage(browser, `${url}${body.path}`);
  await own.page.getByText("secret-agent").first().waitFor();
  assert.doesNotMatch(own.page.url(), /sign-in/, "the link is not left in the address");
  assert.equal(await own.page.evaluate("document.cookie"), "", "no script can read the session");

  const again = await openPage(browser, `${url}${body.path}`);
  await again.page.getByText("Links are good once").first().waitFor();
  assert.doesNotMatch(await again.page.content(), /secret-agent/);
  assert.deepEqual(own.faults, []);
});
