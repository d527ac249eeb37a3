/** Which agent's tool is about to commit: git's hook runs in another process, and must not take the agent for a stranger. */
import { join } from "node:path";
import { fileName, filesIn, readPrivateJson, remove, writePrivate } from "./private-files.ts";
import { ancestorsOf, toolAbove } from "./processes.ts";

interface CommitMark {
  readonly agentId: string;
  readonly at: number;
  /** The tool itself: its hooks and its commands both descend from it. Null where that is not known. */
  readonly toolPid: number | null;
}

const markMsMax = 600_000;

/** `pid` is the hook's. */
export function markCommit(checkout: string, agentId: string, pid: number): void {
  const toolPid = toolAbove(pid)?.pid ?? null;
  const mark: CommitMark = { agentId, at: Date.now(), toolPid };
  writePrivate(join(checkout, "commits", fileName(agentId)), JSON.stringify(mark));
}

export function unmarkCommit(checkout: string, agentId: string): void {
  remove(join(checkout, "commits", fileName(agentId)));
}

/** The agents whose commit this process may be part of. */
export function committingAgents(checkout: string, pid: number): readonly string[] {
  const folder = join(checkout, "commits");
  const above = new Set(ancestorsOf(pid).map((one) => one.pid));
  return filesIn(folder).flatMap((name) => {
    const mark = readPrivateJson<CommitMark>(join(folder, name), { agentId: "string", at: "number" });
    if (mark === null || Date.now() - mark.at > markMsMax) return [];
    return mark.toolPid === null || above.size === 0 || above.has(mark.toolPid) ? [mark.agentId] : [];
  });
}
