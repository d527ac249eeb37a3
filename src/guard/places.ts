/**
 * Where guards keep what they know. What belongs to a session (its agents and their tokens) lies in the user's state
 * folder, because one session may write in several repositories; what belongs to a checkout (who wrote which file last)
 * lies in its git folder, because all sessions there share it.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import type { Repository } from "../names/repository.ts";
import { nodeModule } from "./node-module.ts";
import type { Environment } from "./settings.ts";

/** A file's name may have 255 bytes; something is put before it, and behind it while it is written. */
const plainBytesMax = 96;

export function stateFolder({ LEASEHOLD_STATE, XDG_STATE_HOME, HOME }: Environment): string {
  if (LEASEHOLD_STATE) return LEASEHOLD_STATE;
  return join(XDG_STATE_HOME || join(HOME || homedir(), ".local", "state"), "leasehold");
}

export function sessionsFolder(environment: Environment): string {
  return join(stateFolder(environment), "sessions");
}

export function sessionFolder(environment: Environment, tool: string, sessionId: string): string {
  return join(sessionsFolder(environment), `${tool}-${fileName(sessionId)}`);
}

export function checkoutFolder({ root, gitFolder }: Repository, environment: Environment): string {
  return gitFolder === null ? join(stateFolder(environment), "folders", fileName(root)) : join(gitFolder, "leasehold");
}

/** A name for a file, of any text. Most are short enough to be written out, which spares a hook the loading of a hash. */
export function fileName(text: string): string {
  const plain = Buffer.from(text, "utf8");
  if (plain.length <= plainBytesMax) return plain.toString("hex");
  return `long-${nodeModule("node:crypto").hash("sha256", text, "hex")}`;
}
