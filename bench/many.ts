/**
 * One call that concerns very many leases (L14, C5): how long it takes, whether it is answered right, and for how long it
 * blocks the server's event loop, with a light load beside it. First every way to end or keep all of them, then a wait for all.
 *
 *   npm run bench:many [-- --leases 133120 --held 1000000 --only wait]
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { format, median, type Running, removeFolder, runLoad, runScript, startLeasehold } from "./children.ts";
import { watchLoop } from "./loop-delay.ts";

const { values } = parseArgs({
  options: {
    leases: { type: "string", default: "133120" },
    held: { type: "string", default: "1000000" },
    only: { type: "string", default: "" },
  },
});
const leases = Number(values.leases);
const bars = { blockedMs: 50, waitMs: 5 };
const untilEndMs = 270_000;

interface Way {
  readonly name: string;
  /** How many agents hold the leases. */
  readonly agents: number;
  readonly path: string;
  readonly body: object;
  readonly isRight: (answer: Answer) => boolean;
  /** The leases live on. */
  readonly keeps?: true;
}

const ways: readonly Way[] = [
  {
    name: "revoke by prefix",
    agents: 1_000,
    path: "/v1/revoke",
    body: { resource_prefix: "FILE:/fill", reason: "bench" },
    isRight: ({ revoked }) => revoked === leases,
  },
  {
    name: "revoke by agent",
    agents: 1,
    path: "/v1/revoke",
    body: { agent_id: "fill-0", reason: "bench" },
    isRight: ({ revoked }) => revoked === leases,
  },
  {
    name: "abort",
    agents: 1,
    path: "/v1/agents/fill-0/transition",
    body: { to: "ABORTED" },
    isRight: () => true,
  },
  {
    name: "fence of a pattern",
    agents: 1_000,
    path: "/v1/resources/fence",
    body: { resource: "FILE:/fill/**", reason: "bench" },
    isRight: () => true,
  },
  {
    name: "suspend the tenant",
    agents: 1_000,
    path: "/v1/tenants/default/suspend",
    body: { reason: "bench" },
    isRight: () => true,
  },
  {
    name: "release all",
    agents: 1,
    path: "/v1/release",
    body: { agent_id: "fill-0" },
    isRight: ({ leases_total }) => leases_total === leases,
  },
  {
    name: "heartbeat for all",
    agents: 1,
    path: "/v1/heartbeat",
    body: { agent_id: "fill-0" },
    isRight: ({ leases_total }) => leases_total === leases,
    keeps: true,
  },
  {
    name: "take up the agent",
    agents: 1,
    path: "/v1/agents",
    body: { agent_id: "fill-0" },
    isRight: ({ epoch }) => epoch === 2,
    keeps: true,
  },
];

let isGood = true;
for (const way of ways) {
  if (way.name.includes(values.only)) isGood = (await endAll(way)) && isGood;
}
if ("wait".includes(values.only)) isGood = (await waitForAll(Number(values.held))) && isGood;
if (!isGood) process.exitCode = 1;

async function endAll({ name, agents, path, body, isRight, keeps }: Way): Promise<boolean> {
  const { server, folder } = await startFilled(leases, agents);
  const isLoaded = name !== "suspend the tenant";
  const load = isLoaded ? runLoad<{ rate: number; p99: number }>("load-http.ts", server.port, 2, 6, "mix") : null;
  await sleep(1_500);
  const blocked = await watchLoop(server.port);
  const began = performance.now();
  const { status, answer } = await call(server, path, body);
  const tookMs = performance.now() - began;
  const blockedMs = await blocked();
  const left = await leasesLeft(server);
  const beside = load === null ? "" : `, load p99 ${(await load).p99.toFixed(1)} ms`;
  const isDone = status < 300 && left === (keeps ? 1 : 0) && isRight(answer);
  const verdict = isDone && blockedMs <= bars.blockedMs ? "" : `: MISSED (${status}, ${left} left)`;
  console.log(
    `${format(leases)} leases, ${name}: answered after ${format(tookMs)} ms, loop blocked ${blockedMs.toFixed(1)} ms (bar ${bars.blockedMs} ms)${beside}${verdict}`,
  );
  await server.stop();
  removeFolder(folder);
  return verdict === "";
}

/** C5: an agent that is older than all holders waits for everything. */
async function waitForAll(held: number): Promise<boolean> {
  const { server, folder } = await startFilled(held, 1_000, "eldest");
  const intents = [{ predicate: "MUTATES", resource: "FILE:/**" }];
  const times: Record<"would_wait" | "wait" | "look-up", number[]> = { would_wait: [], wait: [], "look-up": [] };
  const timed = async <T>(what: keyof typeof times, run: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    const result = await run();
    times[what].push(performance.now() - began);
    return result;
  };
  let isRight = true;
  for (let round = 0; round < 20; round++) {
    const acquire = (wait: number) =>
      call(server, "/v1/acquire", { agent_id: "eldest", intents, wait_timeout_ms: wait });
    const refused = await timed("would_wait", () => acquire(0));
    isRight &&= refused.answer.blocked_by_total === held;
    const { answer } = await timed("wait", () => acquire(30_000));
    const id = answer.request_id ?? "";
    const found = await timed("look-up", () => call(server, `/v1/requests/${id}`, null));
    isRight &&= found.answer.blocked_by?.length === 16 && found.answer.blocked_by_total === held;
    await fetch(`http://127.0.0.1:${server.port}/v1/requests/${id}`, { method: "DELETE" });
  }
  let isQuick = true;
  for (const [what, list] of Object.entries(times)) {
    isQuick &&= median(list) < bars.waitMs;
    console.log(
      `${format(held)} live leases, ${what} on FILE:/**: median ${median(list).toFixed(2)} ms, at most ${Math.max(...list).toFixed(2)} ms (bar ${bars.waitMs} ms)${median(list) < bars.waitMs ? "" : ": MISSED"}`,
    );
  }
  if (!isRight) console.log("  the obstacles or their number are wrong: MISSED");
  await server.stop();
  removeFolder(folder);
  return isQuick && isRight;
}

async function startFilled(count: number, agents: number, eldest = ""): Promise<{ server: Running; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-many-"));
  await runScript("fill.ts", folder, count, Date.now() + untilEndMs, agents, eldest);
  return { server: await startLeasehold(folder), folder };
}

interface Answer {
  readonly revoked?: number;
  readonly leases_total?: number;
  readonly epoch?: number;
  readonly request_id?: string;
  readonly blocked_by?: readonly unknown[];
  readonly blocked_by_total?: number;
}

async function call({ port }: Running, path: string, body: object | null): Promise<{ status: number; answer: Answer }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: body === null ? "GET" : "POST",
    headers: { "content-type": "application/json" },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, answer: (await response.json()) as Answer };
}

async function leasesLeft({ port }: Running): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/leases?resource=FILE:/fill/**&limit=1`);
  return ((await response.json()) as { readonly leases: readonly unknown[] }).leases.length;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
