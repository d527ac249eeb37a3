/** Which agent's tool is about to commit: git's hook runs in another process, and must not take the agent for a stranger. */
import { join } from "node:path";
import { fileName, filesIn, readPrivateJson, remove, writePrivate } from "./private-files.ts";
import { ancestorsOf, toolAbove } from "./processes.ts";

interface CommitMark {
  /** The agent, and leases that it holds by another way. */
  readonly names: readonly string[];
  readonly at: number;
  /** The tool itself: its hooks and its commands both descend from it. Null where that is not known. */
  readonly toolPid: number | null;
}

const markMsMax = 600_000;

/** `pid` is the hook's. */
export function markCommit(checkout: string, names: readonly string[], pid: number): void {
  const toolPid = toolAbove(pid)?.pid ?? null;
  const mark: CommitMark = { names, at: Date.now(), toolPid };
  writePrivate(join(checkout, "commits", fileName(names[0] ?? "")), JSON.stringify(mark));
}

export function unmarkCommit(checkout: string, agentId: string): void {
  remove(join(checkout, "commits", fileName(agentId)));
}

/** The agents whose commit this process may be part of, and what else counts as theirs. */
export function committingAgents(checkout: string, pid: number): readonly string[] {
  const folder = join(checkout, "commits");
  const above = new Set(ancestorsOf(pid).map((one) => one.pid));
  return filesIn(folder).flatMap((name) => {
    const mark = readPrivateJson<CommitMark>(join(folder, name), { names: "object", at: "number" });
    if (mark === null || Date.now() - mark.at > markMsMax) return [];
    return mark.toolPid === null || above.size === 0 || above.has(mark.toolPid) ? mark.names : [];
  });
}
