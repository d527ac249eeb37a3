/** Small files for this user alone, written whole or not at all: several hooks of a session may run at once. */
import { dirname } from "node:path";
import { nodeModule } from "./node-module.ts";
import { isRecord } from "./payload.ts";

const { closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } =
  nodeModule("node:fs");

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
