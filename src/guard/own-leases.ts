/**
 * Leases that a session got by other ways than its guard: its model called `acquire_leases` over MCP. Where that goes through
 * a process of the session, both are one agent; over HTTP they may be two. So the guard reads what the tool answered,
 * and remembers which leases were granted to this very session: they are not in its way.
 */
import { join } from "node:path";
import { isRecord } from "./payload.ts";
import { fileName, filesIn, readPrivate, remove, writePrivate } from "./private-files.ts";
import type { Session } from "./session.ts";

const folder = "granted";
const acquiring = /(?:^|[_:])(?:acquire_leases|await_request)$/;
const depthMax = 6;
/** A model that acquires this many in one turn is not served by more. */
const leasesMax = 1_000;

export function noteGranted({ agentFolder }: Session, toolName: string, response: unknown): void {
  if (!acquiring.test(toolName)) return;
  for (const id of grantedIn(response, 0).slice(0, leasesMax))
    writePrivate(join(agentFolder, folder, fileName(id)), id);
}

/** What counts as the session itself: its agent, and the leases that its model got. */
export function ownNames({ agentFolder, agentId }: Session): readonly string[] {
  const path = join(agentFolder, folder);
  return [agentId, ...filesIn(path).flatMap((name) => readPrivate(join(path, name)) ?? [])];
}

export function forgetGranted({ agentFolder }: Session): void {
  remove(join(agentFolder, folder));
}

/** The answer is a list of contents, or an object with one; its text may be JSON. Only a grant counts. */
function grantedIn(value: unknown, depth: number): readonly string[] {
  if (depth > depthMax) return [];
  if (typeof value === "string") {
    if (!value.startsWith("{") && !value.startsWith("[")) return [];
    try {
      return grantedIn(JSON.parse(value), depth + 1);
    } catch {
      return [];
    }
  }
  if (Array.isArray(value)) return value.flatMap((one) => grantedIn(one, depth + 1));
  if (!isRecord(value)) return [];
  const { verdict, leases } = value;
  if (verdict === "GRANTED" && Array.isArray(leases)) {
    return leases.flatMap((one: unknown) => {
      const { id } = isRecord(one) ? one : {};
      return typeof id === "string" ? [id] : [];
    });
  }
  return Object.values(value).flatMap((one) => grantedIn(one, depth + 1));
}
