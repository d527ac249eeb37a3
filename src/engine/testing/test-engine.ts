/** An engine on a disk in memory, and the commands that its tests submit. */
import assert from "node:assert/strict";
import type { Acquire, Command } from "../../kernel/contract/commands.ts";
import type { Lease } from "../../kernel/contract/records.ts";
import { createMemoryDisk, createMemoryStore, type MemoryDisk } from "../../store/memory.ts";
import { drawEntropy } from "../clock.ts";
import { Engine } from "../engine.ts";
import type { EngineOptions } from "../engine-types.ts";

const operator = { role: "operator", agentId: null, epoch: null } as const;
export const asked = { tenant: "default", actor: operator } as const;

export function openEngine(disk: MemoryDisk, options: Partial<EngineOptions> = {}) {
  const lines: string[] = [];
  const note = (_details: object, message: string): void => void lines.push(message);
  const engine = new Engine({
    store: createMemoryStore(disk),
    encodeEvent: ({ type, tenant }) => JSON.stringify({ type, tenant }),
    log: { info: note, warn: note, error: note },
    ...options,
  });
  return { engine, lines };
}

export async function startEngine(disk = createMemoryDisk(), options: Partial<EngineOptions> = {}) {
  const opened = openEngine(disk, options);
  await opened.engine.start();
  return { ...opened, disk };
}

export function register(agentId: string): Command {
  return { ...asked, type: "register_agent", agentId, labels: null, entropy: drawEntropy() };
}

export function acquire(agentId: string, resource: string, change: Partial<Acquire> = {}): Acquire {
  return {
    ...asked,
    type: "acquire",
    agentId,
    intents: [{ predicate: "MUTATES", resource }],
    ttlMs: null,
    waitTimeoutMs: null,
    standbyMs: 0,
    idleTimeoutMs: null,
    purpose: null,
    tokens: false,
    dryRun: false,
    requestKey: null,
    entropy: drawEntropy(),
    ...change,
  };
}

export function release(leaseId: string): Command {
  return { ...asked, type: "release_lease", leaseId, version: null, entropy: drawEntropy() };
}

export async function grant(
  engine: Engine,
  agentId: string,
  resource: string,
  change: Partial<Acquire> = {},
): Promise<Lease> {
  const { reply } = await engine.command(acquire(agentId, resource, change));
  assert.equal(reply.type, "granted");
  const lease = reply.type === "granted" ? reply.leases[0] : undefined;
  assert.ok(lease !== undefined);
  return lease;
}
