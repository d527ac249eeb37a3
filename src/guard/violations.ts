/**
 * Writes that went past a lease: shown to the agent that did it, kept in the checkout for `guard status`, and reported to
 * the server, whose event tells the holder.
 */
import { join } from "node:path";
import type { Lease } from "../sdk/wire.ts";
import { Unreachable } from "./control-plane.ts";
import type { HookCall } from "./hook-call.ts";
import { appendPrivate, readPrivate } from "./private-files.ts";
import { callAs } from "./session.ts";
import type { Target } from "./targets.ts";
import { plain, termsOf, untrustedWords } from "./words.ts";

export interface Violation {
  readonly at: string;
  readonly agent_id: string;
  readonly tool: string;
  readonly resource: string;
  readonly holder: string;
  readonly lease_id: string;
}

/** A hook that did not answer in time, or was skipped. */
export interface Unseen {
  readonly at: string;
  readonly agent_id: string;
  readonly tool: string;
  readonly unseen: string;
}

export interface Found {
  readonly target: Target;
  readonly holder: Lease;
}

const shownMax = 5;
const subjectLengthMax = 200;
/** A command that overwrote more than that is known by these. */
const reportedMax = 20;

export function logViolation(checkout: string, { session, payload }: HookCall, { target, holder }: Found): void {
  const violation: Violation = {
    at: new Date().toISOString(),
    agent_id: session.agentId,
    tool: payload.toolName,
    resource: target.resource,
    holder: holder.agent_id,
    lease_id: holder.id,
  };
  appendPrivate(violationsFile(checkout), JSON.stringify(violation));
}

/** A tool that ran without its guard's word; what it wrote is not known. */
export function logUnseen(checkout: string, { session, payload }: HookCall): void {
  const unseen: Unseen = {
    at: new Date().toISOString(),
    agent_id: session.agentId,
    tool: payload.toolName,
    unseen: unseenSubject(payload.toolInput),
  };
  appendPrivate(violationsFile(checkout), JSON.stringify(unseen));
}

function unseenSubject({ command, file_path: path }: HookCall["payload"]["toolInput"]): string {
  const subject = typeof command === "string" ? command : typeof path === "string" ? path : "";
  return plain(subject).slice(0, subjectLengthMax);
}

/** As events (`lease.violated`). The agent is notified, and the log has it, even if the server cannot be reached. */
export async function reportViolations(call: HookCall, found: readonly Found[]): Promise<void> {
  const reports = found.slice(0, reportedMax).map(({ target, holder }) => {
    const path = `/v1/leases/${encodeURIComponent(holder.id)}/violations`;
    return callAs(call, "POST", path, { agent_id: call.session.agentId, resource: target.resource });
  });
  for (const { reason } of (await Promise.allSettled(reports)).filter((one) => one.status === "rejected")) {
    if (!(reason instanceof Unreachable)) throw reason;
  }
}

export function readViolations(checkout: string): readonly (Violation | Unseen)[] {
  const lines = (readPrivate(violationsFile(checkout)) ?? "").split("\n").filter((line) => line !== "");
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as Violation | Unseen];
    } catch {
      return [];
    }
  });
}

export function violationWords(violations: readonly Found[]): string {
  const shown = violations.slice(0, shownMax).map(({ target, holder }) => {
    return `${target.resource}, which ${plain(holder.agent_id)} holds ${termsOf(holder)}`;
  });
  const more = violations.length - shown.length;
  return (
    `Leasehold: VIOLATION: that changed ${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}.${untrustedWords(violations.map(({ holder }) => holder))} ` +
    "Take your change back if you can do so without touching theirs (do not reset the file: that would undo theirs too), " +
    "tell the user, and write there only when the lease has ended. It is noted in the checkout's log of violations."
  );
}

function violationsFile(checkout: string): string {
  return join(checkout, "violations.log");
}
