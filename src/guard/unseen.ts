/**
 * Tools that ran without the word of their guard: a hook that takes too long is ended by its tool, which then goes on. What
 * was allowed is noted before the tool runs; where the hook after it finds no note, the tool ran unseen, and that is
 * reported to the agent, to its user and in the checkout's log.
 */
import { join } from "node:path";
import { findRepository } from "../names/repository.ts";
import type { HookCall } from "./hook-call.ts";
import { checkoutFolder, fileName, readPrivate, remove, writePrivate } from "./private-files.ts";
import { actionOf } from "./tools.ts";
import { logUnseen } from "./violations.ts";

const folder = "allowed";

/** Null for a call without an id, or one that writes nothing. */
function noteOf({ payload, session }: HookCall): string | null {
  const action = actionOf(payload.toolName, payload.toolInput);
  if (payload.toolUseId === null || action === null || action.kind === "none" || action.kind === "read") return null;
  return join(session.agentFolder, folder, fileName(`${payload.toolUseId} ${payload.toolName}`));
}

export function noteAllowed(call: HookCall): void {
  const path = noteOf(call);
  if (path !== null) writePrivate(path, "");
}

/** The hook was ended before it had its answer. The tool may run all the same. */
export function noteUnanswered(call: HookCall): void {
  if (noteOf(call) !== null) log(call);
}

/** What to say of a tool that has run unseen; null where it was allowed. */
export function unseenWords(call: HookCall): string | null {
  const path = noteOf(call);
  if (path === null) return null;
  if (readPrivate(path) !== null) {
    remove(path);
    return null;
  }
  log(call);
  return (
    `Leasehold: ${call.payload.toolName} ran UNSEEN: the hook before it was not called, or did not answer in time. ` +
    "What it changed was compared afterwards with what others hold."
  );
}

function log(call: HookCall): void {
  const repository = findRepository(call.payload.cwd);
  if (repository !== null) logUnseen(checkoutFolder(repository, call.environment), call);
}
