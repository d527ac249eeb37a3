/**
 * Where the data is. It holds the server's secrets, so it is never in a git work tree where it could be committed: the
 * usual place is in the user's home, and another one within a work tree must be ignored by git.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { homeFolder } from "../names/defaults.ts";
import { loadConfig } from "../server/config/config.ts";
import type { Call, Flag } from "./command.ts";
import { UsageProblem } from "./problem.ts";

export const dataFlag: Flag = { sign: "DIR", words: "the data [~/.leasehold/data]; also LEASEHOLD_DATA" };

/** What --data says, else the environment or the config file that it names. */
export function dataOf(call: Pick<Call, "text" | "environment">): string {
  return loadConfig({ data: call.text("data") ?? undefined }, call.environment).data;
}

/** Where there must be data already: reading never creates any. */
export function existingData(data: string): string {
  if (existsSync(join(data, "leasehold.sqlite"))) return data;
  throw new UsageProblem(`there is no data in ${data}; give the folder of a server with --data`);
}

/** Before anything is written there. */
export function checkDataPlace(data: string): void {
  const folder = resolve(data);
  if (folder.startsWith(join(homeFolder(), "/"))) prepareHome();
  const root = workTreeOf(folder);
  if (root === null || isIgnored(root, folder)) return;
  throw new UsageProblem(
    `${folder} is in the git work tree ${root}, where the server's secrets could be committed; leave --data out to use ~/.leasehold/data, or add the folder to .gitignore`,
  );
}

/** Some keep their whole home in git. */
function prepareHome(): void {
  const home = homeFolder();
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const file = join(home, ".gitignore");
  if (!existsSync(file)) writeFileSync(file, "*\n", { mode: 0o600 });
}

function workTreeOf(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
    if (dirname(at) === at) return null;
  }
}

/** Where git is not installed, nothing is known to be ignored. */
function isIgnored(root: string, folder: string): boolean {
  const asked = join(folder, "leasehold.sqlite");
  return spawnSync("git", ["-C", root, "check-ignore", "--quiet", asked], { stdio: "ignore" }).status === 0;
}
