/** The scrubber where not all of the history is kept any more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { pause, serve } from "../server/harness.ts";
import { openBrowser, openPage } from "./browser.ts";

test("the scrubber says of a moment whether some of what was held then was pruned", async (t) => {
  const { address, service, register, grant, post } = await serve(t);
  const { engine } = service;
  await register("ann");
  const lease = await grant("ann", "FILE:/gone");
  await grant("ann", "FILE:/kept", { ttl_ms: 200_000 });
  await pause(5);
  const at = engine.now();
  await pause(5);
  await post(`/v1/leases/${lease.id}/release`);
  await pause(5);
  const since = engine.now();

  const browser = await openBrowser();
  t.after(() => browser.close());
  const { page, faults } = await openPage(browser, `${address.url}/#/events?at=${at}`);
  const moment = page.locator(".panel", { hasText: "Held and waiting at" });
  await moment.getByText("complete", { exact: true }).waitFor();
  await moment.getByText("2 leases were held").waitFor();

  await engine.store.prune({ eventsBefore: 0, endedBefore: since, endedKeep: 1_000 });
  await page.reload();
  await moment.getByText(/incomplete: history since then was pruned/).waitFor();
  await moment.getByText("1 lease was held").waitFor();
  assert.equal(await moment.getByText("complete", { exact: true }).count(), 0);
  assert.deepEqual(faults, []);
});
