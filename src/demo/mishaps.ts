/** What goes wrong in every fleet: an agent that crashes, one that wakes up too late, and a broken GPU. */
import { LeaseholdError } from "../sdk/index.ts";
import { fileNamed } from "./editing.ts";
import { about, pause, repeat, type Stage } from "./stage.ts";

/** It dies with two files in its hands. They are free when its time is over, and nobody has to clean up. */
export async function crash(stage: Stage): Promise<void> {
  const { client, say } = stage;
  await repeat(stage, async () => {
    await client.call("register_agent", { agent_id: "hal", labels: { model: "medium", role: "editor" } });
    const wasGranted = await acquire(stage, "hal", ["src/auth/login.ts", "src/config.ts"], "log failed logins", 12_000);
    if (wasGranted === null) return await pause(stage, 5);
    await pause(stage, 3);
    say("hal crashed while it held login.ts and config.ts. Both are free within 12 s, without anybody's help.");
    await pause(stage, about(stage, 35));
  });
}

/** It sleeps through the end of its lease. What it does then is refused, because somebody else may have the file. */
export async function oversleep(stage: Stage): Promise<void> {
  const { client, say } = stage;
  await pause(stage, 14);
  await client.call("register_agent", { agent_id: "ivy", labels: { model: "large", role: "editor" } });
  await repeat(stage, async () => {
    const leaseId = await acquire(stage, "ivy", ["src/checkout/cart.ts"], "fix a rounding error", 5_000);
    if (leaseId === null) return await pause(stage, 4);
    await pause(stage, 9);
    const code = await refusalOf(client.call("heartbeat", { lease_id: leaseId }));
    say(`ivy woke up too late and wanted to go on with cart.ts: refused, ${code ?? "not at all"}.`);
    await pause(stage, about(stage, 30));
  });
}

/** A GPU that somebody has to look at: nothing is leased on it until it was reset. */
export async function wantBrokenGpu(stage: Stage): Promise<void> {
  const { client, say } = stage;
  const broken = "GPU:/lab/1";
  await client.call("declare_resource", { resource: "GPU:/lab/0", capacity: 4 });
  await client.call("declare_resource", { resource: broken, capacity: 1 });
  await client.call("fence_resource", { resource: broken, reason: "memory errors: look at the card, then reset it" });
  const agent = await client.agent({ id: "jon", labels: { model: "large", role: "trainer" } });
  await pause(stage, 4);
  say("jon needs GPU:/lab/1, which is fenced: it waits for a person. Reset it on the page, under Resources.");
  await repeat(stage, async () => {
    const work = agent.withLease(broken, (held) => pause(stage, about(stage, 12), held.signal), {
      purpose: "train the ranking",
      timeoutMs: 0,
      signal: stage.signal,
    });
    const code = await refusalOf(work);
    if (code === null) say("jon got GPU:/lab/1 after it was reset, and has trained on it.");
    await pause(stage, code === null ? 20 : 3);
  });
}

/** Older work is in the way, or nothing became free in time. */
const refusals: readonly string[] = ["die", "wait_timeout", "would_wait"];

/** The first lease's id; null where older work is in the way. */
async function acquire(
  { client }: Stage,
  agentId: string,
  paths: readonly string[],
  purpose: string,
  ttlMs: number,
): Promise<string | null> {
  const intents = paths.map((path) => ({ predicate: "MUTATES" as const, resource: fileNamed(path) }));
  const asked = { agent_id: agentId, intents, purpose, ttl_ms: ttlMs };
  try {
    const answer = await client.call("acquire", {
      ...asked,
      wait_timeout_ms: 20_000,
      standby_ms: 20_000,
      hold_ms: 20_000,
    });
    return answer.verdict === "GRANTED" ? (answer.leases[0]?.id ?? null) : null;
  } catch (error) {
    if (error instanceof LeaseholdError && refusals.includes(error.code)) return null;
    throw error;
  }
}

/** The code that it was refused with; null where it was not. */
async function refusalOf(call: Promise<unknown>): Promise<string | null> {
  try {
    await call;
    return null;
  } catch (error) {
    if (error instanceof LeaseholdError) return error.code;
    throw error;
  }
}
