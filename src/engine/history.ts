/**
 * What the kernel cannot say because it knows only the living: how a lease ended, and what happened to resources since
 * a checkpoint. The store's history says it; ended is final, so asking after the decision cannot race.
 */
import type { Command } from "../kernel/contract/commands.ts";
import type { Lease, Millis } from "../kernel/contract/records.ts";
import type { LostLease, Observe, Reply } from "../kernel/contract/replies.ts";
import { answerForEnded, answerForEndedTask } from "../kernel/kernel.ts";
import { namesOverlap } from "../kernel/names/pattern.ts";
import { parseResourceName, type ResourceName } from "../kernel/names/resource-name.ts";
import type { EndedLease, History, ResourceFilter } from "../store/store.ts";
import { readLease } from "./codec/record-text.ts";
import { readEndedTask } from "./codec/task-text.ts";

/** Whether the reply leaves something that only history can tell. */
export function needsHistory(reply: Reply): boolean {
  switch (reply.type) {
    case "refused":
      return reply.code === "lease_unknown" || reply.code === "task_unknown";
    case "leases":
      return reply.lost.some(({ lease }) => lease === null);
    default:
      return false;
  }
}

export async function completeReply(history: History, command: Command, reply: Reply): Promise<Reply> {
  if (reply.type === "refused" && reply.code === "task_unknown" && reply.taskId !== undefined) {
    const [ended] = await history.endedTasks(command.tenant, [reply.taskId]);
    return answerForEndedTask(command, reply, ended === undefined ? null : readEndedTask(ended.body));
  }
  if (reply.type === "refused" && reply.code === "lease_unknown" && reply.leaseId !== undefined) {
    const [ended] = await endedLeases(history, command.tenant, [reply.leaseId]);
    return answerForEnded(command, reply, ended ?? null);
  }
  if (reply.type === "leases" && "agentId" in command) {
    return { ...reply, lost: await completeLost(history, command.tenant, command.agentId, reply.lost) };
  }
  return reply;
}

export async function endedLeases(history: History, tenant: string, ids: readonly string[]): Promise<Lease[]> {
  const rows = await history.endedLease(tenant, ids);
  return rows.map(({ body }) => readLease(body));
}

/** L8: the truth for each of the agent's own; another's lease looks like one that never was. */
async function completeLost(
  history: History,
  tenant: string,
  agentId: string | null,
  lost: readonly LostLease[],
): Promise<LostLease[]> {
  const unknown = lost.filter(({ lease }) => lease === null).map(({ id }) => id);
  const ended = new Map<string, Lease>();
  for (const lease of await endedLeases(history, tenant, unknown))
    if (lease.agentId === agentId) ended.set(lease.id, lease);
  return lost.map((one) => ({ ...one, lease: one.lease ?? ended.get(one.id) ?? null }));
}

export interface Change {
  readonly resource: string;
  readonly predicate: string;
  readonly agentId: string;
  readonly at: Millis;
  readonly version: string | null;
}

export interface Observation {
  readonly since: Millis;
  readonly truncated: boolean;
  readonly changes: readonly Change[];
}

/** The most that one update lists; past that it is cut, and says so. */
const changesMax = 1_000;
/** Ended leases that are looked at for one update. */
const scannedMax = 10_000_000;

/** A4: all writing leases that ended since then on anything that overlaps with the named resources. */
export async function observe(history: History, tenant: string, { since, resources }: Observe): Promise<Observation> {
  const names = resources.map(parse).filter((name) => name !== null);
  const changes: Change[] = [];
  let truncated = since < (await history.earliestEnded());
  if (names.length === 0) return { since, truncated, changes };
  for await (const rows of history.endedSince({ tenant, since, limit: scannedMax, touching: filterFor(names) })) {
    for (const row of rows) if (touches(row, names)) changes.push(changeOf(row));
    if (changes.length > changesMax) {
      truncated = true;
      break;
    }
  }
  return { since, truncated, changes: changes.slice(0, changesMax) };
}

function parse(text: string): ResourceName | null {
  const name = parseResourceName(text);
  return "problem" in name ? null : name;
}

function touches({ resource }: EndedLease, names: readonly ResourceName[]): boolean {
  const ended = parse(resource);
  return ended !== null && names.some((name) => namesOverlap(name, ended));
}

function changeOf({ resource, predicate, agentId, endedAt, body }: EndedLease): Change {
  return { resource, predicate, agentId, at: endedAt, version: readLease(body).version };
}

/** Names as they are; patterns by what stands before their first wild segment. */
function filterFor(names: readonly ResourceName[]): ResourceFilter {
  const literals = names.filter(({ wild }) => !wild).map(({ text }) => text);
  const prefixes = names
    .filter(({ wild }) => wild)
    .map(({ type, segments }) => {
      const first = segments.findIndex((segment) => segment.includes("*") || segment.includes("?"));
      // Without the last slash: `/d/**` is `/d` too.
      return `${type}:/${segments.slice(0, first).join("/")}`;
    });
  return { names: literals, prefixes };
}

export interface Assumption {
  readonly resource: string;
  readonly version: string;
}

export interface FailedAssumption {
  readonly resource: string;
  readonly expected: string;
  readonly actual: string | null;
}

/** A5: the last change since the checkpoint must have left the version that the agent assumes. No change: it holds. */
export function failedAssumptions(assumptions: readonly Assumption[], { changes }: Observation): FailedAssumption[] {
  const failed: FailedAssumption[] = [];
  for (const { resource, version: expected } of assumptions) {
    const name = parse(resource);
    if (name === null) continue;
    const last = changes.findLast((change) => {
      const changed = parse(change.resource);
      return changed !== null && namesOverlap(name, changed);
    });
    if (last !== undefined && last.version !== expected) failed.push({ resource, expected, actual: last.version });
  }
  return failed;
}
