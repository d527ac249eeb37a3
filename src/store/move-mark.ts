/** The mark in a data folder whose data is being moved to PostgreSQL, or was: no server opens it any more (L11). */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { type DataFiles, syncPath } from "./sqlite-files.ts";

export interface MoveMark {
  /** Also stored with the data, where it has arrived. */
  readonly id: string;
  readonly state: "moving" | "moved";
  readonly to: string;
  readonly schema: string;
  readonly at: string;
}

export function writeMark({ folder, moved }: DataFiles, mark: MoveMark): void {
  writeFileSync(moved, `${JSON.stringify(mark)}\n`, { mode: 0o600 });
  syncPath(moved);
  syncPath(folder);
}

export function removeMark({ folder, moved }: DataFiles): void {
  rmSync(moved, { force: true });
  syncPath(folder);
}

/** null: there is none. One that was cut short is that of a move which had not begun. */
export function readMark({ moved }: DataFiles): MoveMark | null {
  let text: string;
  try {
    text = readFileSync(moved, "utf8");
  } catch {
    return null;
  }
  try {
    return JSON.parse(text) as MoveMark;
  } catch {
    return { id: "", state: "moving", to: "PostgreSQL", schema: "", at: "" };
  }
}

export function movedWords(files: DataFiles): string {
  const { state, to, at } = readMark(files) ?? { state: "moved", to: "PostgreSQL", at: "" };
  if (state === "moving") return `moving ${files.folder} to ${to} was interrupted: run \`leasehold migrate\` again`;
  return (
    `the data in ${files.folder} was moved to ${to} (${at}); start the server with --store postgres://…, ` +
    `or, only if no server has run there since, delete ${files.moved} to go on here`
  );
}
