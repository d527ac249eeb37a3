/** What a session has read and written, noted for its next write and for those who come after it. */
import type { HookCall } from "./hook-call.ts";
import { noteWrote } from "./leasing.ts";
import { nodeModule } from "./node-module.ts";
import { checkoutFolder } from "./places.ts";
import { isOutside, type Target, targetOf } from "./targets.ts";
import { markWrite, noteSeen, versionOf } from "./versions.ts";

const { lstatSync } = nodeModule("node:fs");

export function noteWritten({ session, environment }: HookCall, target: Target): void {
  const version = versionOf(target.path);
  noteSeen(session.agentFolder, target.path, version);
  noteWrote(session, target);
  const mark = { agentId: session.agentId, state: "written", version, at: Date.now() } as const;
  markWrite(checkoutFolder(target.repository, environment), target.path, mark);
}

export function noteRead(agentFolder: string, path: string, cwd: string): void {
  const target = targetOf(path, cwd);
  if (!isOutside(target) && isFile(target.path)) noteSeen(agentFolder, target.path, versionOf(target.path));
}

function isFile(path: string): boolean {
  try {
    return lstatSync(path).isFile();
  } catch {
    return false;
  }
}
