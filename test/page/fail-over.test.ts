/** A page that follows one server of a cluster while another one, the leader, dies. */
import { once } from "node:events";
import { test } from "node:test";
import { testCluster, until } from "../postgres/cluster-harness.ts";
import { openBrowser, openPage } from "./browser.ts";

test("after a fail-over the page goes on by itself, without a reload, with what happened meanwhile", async (t) => {
  const cluster = await testCluster(t);
  const leader = await cluster.spawn(["--leader-lease-ms", "3000"]);
  const follower = await cluster.start({ leaderLeaseMs: 3_000 });
  await register(follower.address.url, "before");
  const browser = await openBrowser();
  t.after(() => browser.close());
  const { page } = await openPage(browser, `${follower.address.url}/`);
  await page.locator(".lane", { hasText: "before" }).waitFor();
  await page.evaluate("globalThis.isSamePage = true");

  const exited = once(leader.child, "exit");
  leader.child.kill("SIGKILL");
  await exited;
  await register(follower.address.url, "after");
  await page.locator(".lane", { hasText: "after" }).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  await page.waitForFunction("globalThis.isSamePage === true");
});

/** As soon as there is a leader. */
function register(url: string, agentId: string): Promise<void> {
  const body = JSON.stringify({ agent_id: agentId });
  const headers = { "content-type": "application/json" };
  // A change of leader closes the connections of the term that ends.
  const tried = () => fetch(`${url}/v1/agents`, { method: "POST", headers, body });
  return until(() =>
    tried()
      .then(({ ok }) => ok)
      .catch(() => false),
  );
}
