/**
 * When a session may ask again for a resource, after DIE (W5). A hook ends with its step, so the server's hint is kept in a
 * file for each resource, and the next hook obeys it.
 */
import { join } from "node:path";
import { fileName, readPrivate, remove, writePrivate } from "./private-files.ts";
import type { Session } from "./session.ts";

const folder = "hints";
/** No hint is as long; a file that says more was written before the clock was set back. */
const hintMsMax = 60_000;

/** Null: nothing was said. */
export function rememberHint({ agentFolder }: Session, resources: readonly string[], hintMs: number | null): void {
  if (hintMs === null) return;
  const until = String(Date.now() + hintMs);
  for (const resource of resources) writePrivate(join(agentFolder, folder, fileName(resource)), until);
}

/** How long none of these is to be asked for; 0 where nothing was said. */
export function hintLeftMs({ agentFolder }: Session, resources: readonly string[]): number {
  let longest = 0;
  for (const resource of resources) {
    const path = join(agentFolder, folder, fileName(resource));
    const until = readPrivate(path);
    if (until === null) continue;
    const leftMs = Number(until) - Date.now();
    if (leftMs > 0 && leftMs <= hintMsMax) longest = Math.max(longest, leftMs);
    else remove(path);
  }
  return longest;
}
