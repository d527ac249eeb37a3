/** Whether there is such a command, asked before anything is leased for it. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../problem.ts";

/** As a shell looks for it: by its path where it has a slash, else in the folders of PATH. */
export function findCommand(file: string, path: string, cwd: string): string {
  const places = file.includes("/")
    ? [resolve(cwd, file)]
    : path.split(delimiter).map((folder) => join(folder || ".", file));
  let isThere = false;
  for (const place of places) {
    if (statSync(place, { throwIfNoEntry: false })?.isFile() !== true) continue;
    isThere = true;
    try {
      accessSync(place, constants.X_OK);
      return place;
    } catch {
      // Perhaps another of the name can be run.
    }
  }
  if (isThere) throw new Failure(`"${file}" may not be run; make it executable with chmod +x`, exitCodes.cannotRun);
  const where = file.includes("/") ? "there is no such file" : "it is not in a folder of PATH";
  throw new Failure(`"${file}" was not found: ${where}`, exitCodes.noSuchCommand);
}
