/**
 * What files are, by their hash: what a session has seen of them, so that it cannot overwrite what it never saw; and who
 * wrote them last in this checkout, so that a change is not blamed on the wrong one.
 */
import { join } from "node:path";
import type { HookCall } from "./hook-call.ts";
import { checkoutFolder, fileName, filesIn, readPrivate, readPrivateJson, writePrivate } from "./private-files.ts";
import { isOutside, statsOf, type Target, targetOf } from "./targets.ts";

const { readFileSync, statSync } = process.getBuiltinModule("node:fs");

const hashBytesMax = 64 * 2 ** 20;

/** The hash of what is there; "none" where nothing is; a very large file's size and time. */
export function versionOf(path: string): string {
  try {
    const { size, mtimeMs } = statSync(path);
    if (size > hashBytesMax) return `size:${size};mtime:${mtimeMs}`;
    return `sha256:${process.getBuiltinModule("node:crypto").hash("sha256", readFileSync(path), "hex")}`;
  } catch {
    return "none";
  }
}

/** What the session last saw of a file; null if it never looked. */
export function seenVersion(agentFolder: string, path: string): string | null {
  return readPrivate(join(agentFolder, "seen", fileName(path)));
}

export function noteSeen(agentFolder: string, path: string, version: string): void {
  writePrivate(join(agentFolder, "seen", fileName(path)), version);
}

/** An edit is under way, or was the last that we know of. */
export interface WriteMark {
  readonly agentId: string;
  readonly state: "writing" | "written";
  readonly version: string;
  readonly at: number;
}

export function readWriteMark(checkout: string, path: string): WriteMark | null {
  return readPrivateJson<WriteMark>(markPath(checkout, path), {
    agentId: "string",
    state: "string",
    version: "string",
  });
}

export function markWrite(checkout: string, path: string, mark: WriteMark): void {
  writePrivate(markPath(checkout, path), JSON.stringify(mark));
}

function markPath(checkout: string, path: string): string {
  return join(checkout, "writes", fileName(path));
}

/** Whether it is another file than before the tool ran, or than the session has seen. */
export function noteWritten({ session, environment }: HookCall, target: Target): boolean {
  const checkout = checkoutFolder(target.repository, environment);
  const earlier = readWriteMark(checkout, target.path);
  const isOwn = earlier?.agentId === session.agentId;
  const known = isOwn ? earlier.version : seenVersion(session.agentFolder, target.path);
  const version = versionOf(target.path);
  noteSeen(session.agentFolder, target.path, version);
  // For the version that is reported at the end (A6).
  const wrote: WrittenFile = { resource: target.resource, path: target.path };
  writePrivate(join(session.agentFolder, wroteFolder, fileName(target.path)), JSON.stringify(wrote));
  const mark = { agentId: session.agentId, state: "written", version, at: Date.now() } as const;
  markWrite(checkout, target.path, mark);
  return version !== known;
}

export function noteRead(agentFolder: string, path: string, cwd: string): void {
  const target = targetOf(path, cwd);
  if (!isOutside(target) && statsOf(target.path)?.isFile() === true)
    noteSeen(agentFolder, target.path, versionOf(target.path));
}

type WrittenFile = Pick<Target, "resource" | "path">;
export const wroteFolder = "wrote";

/** What this agent wrote since it last released. */
export function wroteFiles(agentFolder: string): readonly WrittenFile[] {
  const folder = join(agentFolder, wroteFolder);
  return filesIn(folder).flatMap((name) => {
    return readPrivateJson<WrittenFile>(join(folder, name), { resource: "string", path: "string" }) ?? [];
  });
}

/** The same as it is now, by resource. */
export function wroteVersions(agentFolder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(wroteFiles(agentFolder).map(({ resource, path }) => [resource, versionOf(path)]));
}
