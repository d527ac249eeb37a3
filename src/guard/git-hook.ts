/** Git's pre-commit: what others hold is not committed. Both names of a rename count. */
import { resolve } from "node:path";
import { NamingProblem } from "../names/project-file.ts";
import { findRepository, type Repository } from "../names/repository.ts";
import type { Lease } from "../sdk/wire.ts";
import { committingAgents } from "./commit-marks.ts";
import { connect, Unreachable } from "./control-plane.ts";
import { runGit } from "./git-run.ts";
import type { HookResult } from "./hook-main.ts";
import { heldByOthers } from "./leasing.ts";
import { checkoutFolder } from "./private-files.ts";
import type { HelperCall } from "./resident/client.ts";
import { type Environment, readSettings, SettingsProblem } from "./settings.ts";
import { covers, isOutside, targetOf } from "./targets.ts";
import { plain, termsOf } from "./words.ts";

const events = ["pre-commit", "pre-merge-commit"];
const shownMax = 10;

export async function runGitHook({ args, cwd, environment, pid }: HelperCall): Promise<HookResult> {
  const [, event = ""] = args;
  if (!events.includes(event))
    return refuse(`"${event}" is not a guarded event of git; give one of ${events.join(", ")}`);
  try {
    const repository = findRepository(cwd);
    return repository === null ? done() : await check(repository, cwd, environment, pid);
  } catch (error) {
    if (error instanceof NamingProblem || error instanceof SettingsProblem) return refuse(error.message);
    return refuse(`the guard failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function check(repository: Repository, cwd: string, environment: Environment, pid: number): Promise<HookResult> {
  const { GIT_INDEX_FILE: indexFile } = environment;
  const options = { folder: cwd, ...(indexFile && { indexFile: resolve(cwd, indexFile) }) };
  const listed = await runGit(repository, ["diff", "--cached", "--name-status", "-M", "-z"], options);
  if (listed === null) return refuse("git does not say what is staged");
  const paths = stagedPaths(listed);
  if (paths.length === 0) return done();
  const settings = readSettings(repository.root, environment);
  const { LEASEHOLD_AGENT_ID } = environment;
  const own = [
    ...committingAgents(checkoutFolder(repository, environment), pid),
    ...(LEASEHOLD_AGENT_ID ? [LEASEHOLD_AGENT_ID] : []),
  ];
  let others: readonly Lease[];
  try {
    others = await heldByOthers(connect(settings), repository.name, own);
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    const where = `no server answers at ${settings.url} (${plain(error.message)})`;
    if (settings.unreachable === "open")
      return { ...done(), stderr: `leasehold: ${where}; this is committed UNGUARDED\n` };
    return refuse(`${where}, so it is unknown whether another agent works on this; start it with \`leasehold serve\``);
  }
  const found = paths.flatMap((path) => {
    const target = targetOf(path, repository.root, { isLink: true });
    if (isOutside(target)) return [];
    const holder = others.find(({ resource }) => covers(resource, target.resource));
    return holder === undefined ? [] : [`  ${plain(path)}: ${plain(holder.agent_id)} ${termsOf(holder)}`];
  });
  if (found.length === 0) return done();
  const more = found.length - shownMax;
  return {
    code: 1,
    stdout: "",
    stderr: `leasehold: nothing is committed, because others hold\n${found.slice(0, shownMax).join("\n")}\n${more > 0 ? `  and ${more} more\n` : ""}Unstage them (git restore --staged PATH), or wait until they are released. A person who knows better takes the leases away (leasehold guard release SESSION, leasehold revoke --agent AGENT), or commits all the same (git commit --no-verify).\n`,
  };
}

/** "M\0path\0", "R100\0old\0new\0", "C75\0from\0to\0". */
export function stagedPaths(output: string): readonly string[] {
  const fields = output.split("\0");
  const paths: string[] = [];
  for (let at = 0; at + 1 < fields.length; ) {
    const status = fields[at] ?? "";
    const [first = "", second = ""] = fields.slice(at + 1, at + 3);
    if (status.startsWith("R") || status.startsWith("C")) {
      // What is copied from is not changed.
      paths.push(...(status.startsWith("R") ? [first] : []), second);
      at += 3;
    } else {
      paths.push(first);
      at += 2;
    }
  }
  return paths.filter((path) => path !== "");
}

function done(): HookResult {
  return { code: 0, stdout: "", stderr: "" };
}

function refuse(words: string): HookResult {
  return { code: 1, stdout: "", stderr: `leasehold: ${words}\n` };
}
