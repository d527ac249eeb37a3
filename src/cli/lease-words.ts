/** Leases and what is in the way, in words. */
import type { Blocker, Lease, ObservationUpdate } from "../sdk/wire.ts";
import { showDuration } from "./durations.ts";
import type { Output } from "./output.ts";
import { shareColour } from "./paint.ts";
import { plain } from "./plain-text.ts";
import type { Column } from "./table.ts";

export const leaseColumns: readonly Column<Lease>[] = [
  { title: "LEASE", cell: ({ id }) => id },
  { title: "RESOURCE", cell: ({ resource }) => resource, gives: "front" },
  { title: "PREDICATE", cell: ({ predicate }) => predicate },
  { title: "AGENT", cell: ({ agent_id: agent }) => agent, gives: "end" },
  { title: "STATE", cell: ({ state }) => state },
  { title: "FENCE", cell: ({ fence }) => String(fence) },
  {
    title: "LEFT",
    cell: (lease) => (lease.expires_in_ms > 0 ? showDuration(lease.expires_in_ms) : "-"),
    colour: (lease) => (lease.expires_in_ms > 0 ? shareColour(lease.expires_in_ms / lease.ttl) : "dim"),
  },
  { title: "PURPOSE", cell: ({ purpose }) => purpose ?? "", gives: "end" },
];

/** One line: who is in the way, with what, for how long, and why. */
export function blockerLine(blocker: Blocker): string {
  const { agent_id: agent, predicate, resource, purpose, lease_id: lease, expires_in_ms: left } = blocker;
  const how = lease === undefined ? "waits ahead to" : "holds";
  const until = left === undefined ? "" : `, ${showDuration(left)} left`;
  const why = purpose === null || purpose === "" ? "" : `, "${purpose}"`;
  return plain(`${agent} ${how} ${predicate} ${resource}${until}${why}`);
}

/** A4: what others did while the agent was not executing, the newest first; null where there is nothing to say. */
export function changesWords({ changes, truncated, since }: ObservationUpdate): string | null {
  if (changes.length === 0 && !truncated) return null;
  const newest = [...changes].reverse().slice(0, changesShownMax);
  const lines = newest.map(({ agent_id: agent, predicate, resource, version, at }) => {
    return plain(`  ${at} ${agent} ${predicate} ${resource}${version === undefined ? "" : ` (now ${version})`}`);
  });
  const more = changes.length - lines.length;
  const rest = truncated ? "  and more than is known" : more > 0 ? `  and ${more} more` : null;
  return [`changed by others since ${since}; read it again:`, ...lines, ...(rest === null ? [] : [rest])].join("\n");
}

const changesShownMax = 10;

export function noteChanges(
  out: Output,
  { observation_update: update }: { observation_update?: ObservationUpdate },
): void {
  const words = update === undefined || out.isJson ? null : changesWords(update);
  if (words !== null) out.note(words);
}

/** The first few of them; the server lists sixteen at most. */
export function blockedWords(blockers: readonly Blocker[], total: number = blockers.length): string {
  const shown = blockers.slice(0, 3).map(blockerLine);
  const more = total - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}
