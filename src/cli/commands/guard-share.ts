/** Folders outside every repository that agents write as well, such as `~/.claude`: with a name, they are guarded. */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { basename, join, resolve } from "node:path";
import { projectFile } from "../../names/project-file.ts";
import { findRepository } from "../../names/repository.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { plain } from "../plain-text.ts";
import { Failure, UsageProblem } from "../problem.ts";

export const shareCommand: Command = {
  name: "guard share",
  summary: "guards a folder outside every repository, such as ~/.claude",
  usage: "FOLDER [--name NAME] [--stop]",
  about: `Agents of all repositories write into a few folders of their user: memories, settings, notes. A ${projectFile} with a name
makes such a folder one more thing that guards lease, as FILE:/NAME/…. The name has the user and the machine in it, unless
--name gives another, for a folder that machines share.`,
  flags: {
    name: { sign: "NAME", words: "what it is called in resource names" },
    stop: { words: "guard it no longer" },
  },
  examples: [
    ["leasehold guard share ~/.claude", "two sessions never write MEMORY.md at once"],
    ["leasehold guard share ~/.claude --stop", "as it was before"],
  ],
  offline: true,
  run: async (call) => {
    const { out } = call;
    const folder = resolve(call.cwd, call.word);
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
      throw new UsageProblem(`${folder} is not a folder`);
    }
    const file = join(folder, projectFile);
    if (call.isSet("stop")) return stop(file, (words) => out.show({ folder, shared: false }, () => words));
    const around = findRepository(folder);
    if (around !== null && around.root !== folder) {
      throw new Failure(`${folder} is in the repository ${plain(around.name)}, and guarded with it`, exitCodes.failed);
    }
    if (around !== null) {
      return void out.show(
        { folder, name: around.name, shared: true },
        () => `${folder} is FILE:/${plain(around.name)}/… already.`,
      );
    }
    const name = call.text("name") ?? nameOf(folder);
    if (!/^[\w.-]+$/.test(name)) throw new UsageProblem(`"${name}" is not a name; use letters, digits and . _ -`);
    writeFileSync(file, `${JSON.stringify({ repository: name }, null, 2)}\n`, { flag: "wx" });
    out.show({ folder, name, shared: true }, () => `Guards lease ${folder} as FILE:/${plain(name)}/… from now on.`);
    return undefined;
  },
};

function stop(file: string, say: (words: string) => void): undefined {
  if (!existsSync(file)) return void say("It is not guarded.");
  const keys = Object.keys(JSON.parse(readFileSync(file, "utf8")) as object);
  if (keys.some((key) => key !== "repository")) {
    throw new Failure(`${file} says more than a name; remove "repository" from it by hand`, exitCodes.failed);
  }
  rmSync(file);
  return void say("Guards do not lease it any more.");
}

/** Another user's folder, and another machine's, is another one. */
function nameOf(folder: string): string {
  return [basename(folder), userInfo().username, hostname()]
    .map((part) => part.replaceAll(/[^\w-]+/g, "-").replaceAll(/^-+|-+$/g, ""))
    .join(".");
}
