/** Leases and what is in the way, in words. */
import type { Blocker, Lease, ObservationUpdate } from "../sdk/wire.ts";
import type { Flag } from "./command.ts";
import { showDuration } from "./durations.ts";
import type { Output } from "./output.ts";
import { type Colour, shareColour } from "./paint.ts";
import { plain } from "./plain-text.ts";
import type { Column } from "./table.ts";

/** What a person wants to know of a lease, the most important first. */
export const leaseColumns: readonly Column<Lease>[] = [
  { title: "RESOURCE", cell: ({ resource }) => resource, gives: "middle", last: true },
  { title: "PREDICATE", cell: ({ predicate }) => predicate },
  { title: "AGENT", cell: ({ agent_id: agent }) => agent, gives: "end" },
  { title: "LEFT", cell: leftText, colour: leftColour },
  { title: "PURPOSE", cell: ({ purpose }) => purpose ?? "", gives: "end" },
];

/** All of it, for programs, and for commands that take a lease's id. */
export const leaseColumnsLong: readonly Column<Lease>[] = [
  ...leaseColumns.filter(({ title }) => title !== "LEFT" && title !== "PURPOSE"),
  { title: "STATE", cell: ({ state }) => state },
  { title: "FENCE", cell: ({ fence }) => String(fence) },
  {
    title: "LEFT",
    cell: (lease) => (lease.expires_in_ms > 0 ? showDuration(lease.expires_in_ms) : "-"),
    colour: leftColour,
  },
  { title: "LEASE", cell: ({ id }) => id },
  { title: "PURPOSE", cell: ({ purpose }) => purpose ?? "", gives: "end" },
];

export const longFlag: Flag = { short: "l", words: "more columns, ids too; a pipe always gets them" };

/** A state that is not the usual one is worth a word. */
function leftText({ expires_in_ms: left, state }: Lease): string {
  const time = left > 0 ? showDuration(left) : "-";
  return state === "ACTIVE" ? time : `${time} ${state}`;
}

function leftColour({ expires_in_ms: left, ttl }: Lease): Colour {
  return left > 0 ? shareColour(left / ttl) : "dim";
}

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
