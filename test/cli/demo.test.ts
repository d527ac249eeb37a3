import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { drawTerminal } from "../../scripts/recording/terminal-svg.ts";
import { createClient } from "../../src/sdk/index.ts";

interface Line {
  readonly url?: string;
  readonly sentence?: string;
}

const folders = (): readonly string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("leasehold-demo-"));

test("the demo shows every state of an agent, each mishap is refused as it should be, and nothing is left of it", async () => {
  const before = folders();
  const child = spawn(process.execPath, ["src/main.ts", "demo", "--port", "0", "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const said: string[] = [];
  const address = new Promise<string>((resolve) => {
    lines.on("line", (text) => {
      const { url, sentence } = JSON.parse(text) as Line;
      if (url !== undefined) resolve(url);
      if (sentence !== undefined) said.push(sentence);
    });
  });
  const client = createClient({ url: await address });
  const states = new Set<string>();
  const names = new Set<string>();
  const isMissing = (): readonly string[] =>
    [
      ["working", "blocked", "waiting_for_person", "idle", "lost"].filter((state) => !states.has(state)),
      [/hal crashed/, /ivy .* lease_expired/, /too late: refused, stale_fence/, /asks sam/, /fenced/]
        .filter((pattern) => !said.some((sentence) => pattern.test(sentence)))
        .map(String),
    ].flat();
  const deadline = performance.now() + 120_000;
  while (isMissing().length > 0 && performance.now() < deadline) {
    const { agents } = await client.call("list_activity", { limit: 100 });
    for (const { agent_id, activity } of agents) {
      names.add(agent_id);
      states.add(activity);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.deepEqual(isMissing(), []);
  assert.equal(names.size, 12);

  // A person resets the GPU, and the agent that waits for it goes on.
  await client.call("reset_resource", { resource: "GPU:/lab/1" });
  for (let isHeld = false; !isHeld; ) {
    const { leases } = await client.call("list_leases", { agent_id: "jon" });
    isHeld = leases.some(({ resource }) => resource === "GPU:/lab/1");
  }
  await client.close();
  child.kill("SIGINT");
  const [code] = (await once(child, "exit")) as [number | null];
  assert.equal(code, 0);
  assert.deepEqual(folders(), before);
});

test("a recording shows one screen at a time, keeps colours, and takes no markup from what agents say", () => {
  const svg = drawTerminal("top", [{ lines: ["\u001b[32mworking\u001b[0m  <script>"] }, { lines: ["idle"] }], 2);
  assert.match(svg, /<tspan fill="#56d364">working<\/tspan> {2}&lt;script&gt;/);
  assert.match(svg, /animation-delay:2\.00s/);
  assert.doesNotMatch(svg, /<script/);
});
