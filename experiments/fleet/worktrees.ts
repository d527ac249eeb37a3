/**
 * Agents that each add a worktree of one repository, configure it, write a file there and commit it, all at once. Git
 * fails where two of its commands write what worktrees share; the guards, as `init` installs them, give them turns.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makePlace, type Place } from "./repository.ts";
import { openSession } from "./session.ts";

const agents = 13;
/** A command that waited for its turn in vain is given again, as its denial says. */
const triesMax = 20;

interface Round {
  readonly commits: number;
  readonly failures: readonly string[];
  readonly ms: number;
}

/** True if every commit arrived in every round with guards. */
export async function showWorktrees(rounds: number): Promise<boolean> {
  const place = await makePlace(["file-01.txt"], {});
  try {
    git(place.root, "config", "user.name", "fleet");
    git(place.root, "config", "user.email", "fleet@example.com");
    let isGood = true;
    for (const way of ["no guards", "guards"] as const) {
      for (let round = 1; round <= rounds; round++) {
        const { commits, failures, ms } = await runRound(place, way, round);
        const why = failures.length === 0 ? "" : `; the first failure: ${failures[0]?.trim().split("\n").at(-1)}`;
        console.log(`${way}, round ${round}: ${commits} of ${agents} commits, ${(ms / 1_000).toFixed(1)} s${why}`);
        if (way === "guards" && commits < agents) isGood = false;
      }
    }
    console.log(isGood ? `with guards all ${agents} commits arrived each time` : "bar missed: commits were lost");
    return isGood;
  } finally {
    await place.remove();
  }
}

async function runRound(place: Place, way: "no guards" | "guards", round: number): Promise<Round> {
  const folder = join(place.root, "..", `${way === "guards" ? "g" : "n"}${round}`);
  mkdirSync(folder);
  const names = Array.from({ length: agents }, (_, index) => `${way === "guards" ? "g" : "n"}${round}-${index}`);
  const began = performance.now();
  const results = await Promise.all(names.map((name) => commitOne(place, way, name, join(folder, name))));
  const ms = performance.now() - began;
  const commits = names.filter((name) => subjectOf(place.root, name) === name).length;
  rmSync(folder, { recursive: true });
  git(place.root, "worktree", "prune");
  return { commits, failures: results.filter(Boolean), ms };
}

/** What failed; empty if nothing did. */
async function commitOne(place: Place, way: "no guards" | "guards", name: string, folder: string): Promise<string> {
  const steps = [
    [place.root, `git worktree add -q -b ${name} ${folder}`],
    [folder, `git config branch.${name}.description ${name} && git config branch.${name}.remote .`],
    [
      folder,
      `echo ${name} > ${name}.txt && git add ${name}.txt && git commit ${way === "guards" ? "" : "--no-verify "}-qm ${name}`,
    ],
  ] as const;
  const session = await openSession(place, name);
  try {
    for (const [cwd, command] of steps) {
      const failure =
        way === "guards" ? await inTurn(() => session.shell(command, cwd)) : await session.bare(command, cwd);
      if (failure !== "") return failure;
    }
    return "";
  } finally {
    await session.endTurn();
    session.crash();
  }
}

async function inTurn(run: () => Promise<string | null>): Promise<string> {
  for (let tries = 0; tries < triesMax; tries++) {
    const failure = await run();
    if (failure !== null) return failure;
  }
  return "it was denied each time";
}

function subjectOf(root: string, branch: string): string {
  try {
    return git(root, "log", "-1", "--format=%s", branch).trim();
  } catch {
    return "";
  }
}

function git(root: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}
