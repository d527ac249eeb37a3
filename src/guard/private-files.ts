/**
 * What guards keep: small files for this user alone, written whole or not at all, because several hooks of a session may
 * run at once. What belongs to a session (its agents and their tokens) lies in the user's state folder, because one
 * session may write in several repositories; what belongs to a checkout (who wrote which file last) lies in its git
 * folder, because all sessions there share it.
 */
import { dirname, join } from "node:path";
import type { Repository } from "../names/repository.ts";
import { stateFolder } from "../trust/owner-token.ts";
import { isRecord } from "./payload.ts";
import type { Environment } from "./settings.ts";

const { closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } =
  process.getBuiltinModule("node:fs");

const folderMode = 0o700;
const fileMode = 0o600;

export function readPrivate(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** A JSON object whose fields have these types; null for anything else. */
export function readPrivateJson<T>(
  path: string,
  types: Partial<Record<keyof T, "string" | "number" | "object">>,
): T | null {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    const isRight =
      isRecord(value) &&
      Object.entries(types).every(([field, type]) => value[field] !== null && typeof value[field] === type);
    return isRight ? (value as T) : null;
  } catch {
    return null;
  }
}

/** Their names; none where there is no such folder. */
export function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

export function writePrivate(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.${process.hrtime.bigint()}`;
  try {
    writeFileSync(temporary, text, { mode: fileMode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    mkdirSync(dirname(path), { recursive: true, mode: folderMode });
    writeFileSync(temporary, text, { mode: fileMode });
  }
  renameSync(temporary, path);
}

/** Adds a line; lines of this length are not torn by others that add at the same time. */
export function appendPrivate(path: string, line: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: folderMode });
  writeFileSync(path, `${line}\n`, { mode: fileMode, flag: "a" });
}

/** True for the one of several processes that makes it. */
export function createPrivate(path: string): boolean {
  mkdirSync(dirname(path), { recursive: true, mode: folderMode });
  try {
    closeSync(openSync(path, "wx", fileMode));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

export function remove(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/** A folder, if there is nothing in it. */
export function removeEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // There is, or it is not there.
  }
}

/** A file's name may have 255 bytes; something is put before it, and behind it while it is written. */
const plainBytesMax = 96;

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
  return `long-${process.getBuiltinModule("node:crypto").hash("sha256", text, "hex")}`;
}
