/** An agent's checkpoint (A2), and taking it up again (A3, A4). */

import type { DigestInput, ResumeAgent, SaveDigest } from "../contract/commands.ts";
import { checkDigest } from "../contract/inputs.gen.ts";
import { readPredicate } from "../contract/predicates.ts";
import { type Digest, type Intent, resolutionStrategies } from "../contract/records.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { readName } from "../deciding/manifest.ts";
import { createDigestEntry } from "../memory/entries.ts";
import { type AgentEntry, changed, leasesOf, type Turn } from "../memory/state.ts";
import { takeUp } from "./agents.ts";

export function saveDigest(turn: Turn, agent: AgentEntry, command: SaveDigest): Reply {
  const { tenant, now } = turn;
  const read = readDigest(command.digest);
  if ("code" in read) return read;
  const digest: Digest = {
    ...read,
    tenant: tenant.record.id,
    agentId: agent.record.id,
    priority: agent.record.priority,
    savedAt: now,
  };
  if (agent.digest === null) agent.digest = createDigestEntry(digest);
  else agent.digest.record = digest;
  changed(turn, agent.digest);
  return { type: "digest", digest };
}

function readDigest(input: DigestInput): Omit<Digest, "tenant" | "agentId" | "priority" | "savedAt"> | Refusal {
  const refusal = checkDigest(input);
  if (refusal !== null) return refusal;
  const intentBacklog: Intent[] = [];
  for (const { predicate: text, resource, units, to, pick } of input.intentBacklog) {
    const field = `intent_backlog.${intentBacklog.length}`;
    const predicate = readPredicate(text);
    if (predicate === undefined)
      return refuse("invalid_predicate", "There is no such predicate.", { field: `${field}.predicate` });
    const name = readName(resource, `${field}.resource`);
    if ("code" in name) return name;
    const target = to === null || to === undefined ? null : readName(to, `${field}.to`);
    if (target !== null && "code" in target) return target;
    intentBacklog.push({
      predicate,
      resource: name.text,
      units: units ?? 1,
      to: target?.text ?? null,
      pick: pick ?? null,
    });
  }
  const { checkpointId, resumePoint, context } = input;
  const resolutionStrategy = resolutionStrategies.find((one) => one === input.resolutionStrategy) ?? "RETRY";
  return { checkpointId, resumePoint, context, intentBacklog, resolutionStrategy };
}

export function resumeAgent(turn: Turn, agent: AgentEntry, command: ResumeAgent): Reply {
  if (agent.digest === null) return refuse("digest_unknown", "The agent has no checkpoint; start from planning.");
  const resources = new Set<string>();
  for (const [index, text] of command.assumed.entries()) {
    const name = readName(text, `assumptions.${index}.resource`);
    if ("code" in name) return name;
    resources.add(name.text);
  }
  const digest = agent.digest.record;
  for (const { resource, to } of digest.intentBacklog) {
    resources.add(resource);
    if (to !== null) resources.add(to);
  }
  takeUp(turn, agent, null);
  return {
    type: "resumed",
    agent: agent.record,
    digest,
    leases: leasesOf(agent).map((lease) => lease.record),
    observe: { since: digest.savedAt, resources: [...resources] },
  };
}
