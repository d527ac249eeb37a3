/** Which agent's tool is about to commit: git's hook runs in another process, and must not take the agent for a stranger. */
import { join } from "node:path";
import { fileName, filesIn, readPrivateJson, remove, writePrivate } from "./private-files.ts";

const { readFileSync } = process.getBuiltinModule("node:fs");

interface CommitMark {
  readonly agentId: string;
  readonly at: number;
  /** The tool itself: its hooks and its commands both descend from it. Null where that is not known. */
  readonly toolPid: number | null;
}

const markMsMax = 600_000;
const shells = /^(?:sh|bash|dash|zsh|fish|ksh)$/;

export function markCommit(checkout: string, agentId: string): void {
  const toolPid = ancestors().find(({ name }) => !shells.test(name))?.pid ?? null;
  const mark: CommitMark = { agentId, at: Date.now(), toolPid };
  writePrivate(join(checkout, "commits", fileName(agentId)), JSON.stringify(mark));
}

export function unmarkCommit(checkout: string, agentId: string): void {
  remove(join(checkout, "commits", fileName(agentId)));
}

/** The agents whose commit this process may be part of. */
export function committingAgents(checkout: string): readonly string[] {
  const folder = join(checkout, "commits");
  const above = new Set(ancestors().map(({ pid }) => pid));
  return filesIn(folder).flatMap((name) => {
    const mark = readPrivateJson<CommitMark>(join(folder, name), { agentId: "string", at: "number" });
    if (mark === null || Date.now() - mark.at > markMsMax) return [];
    return mark.toolPid === null || above.size === 0 || above.has(mark.toolPid) ? [mark.agentId] : [];
  });
}

/** From the parent upwards; empty where the system has no /proc. */
function ancestors(): readonly { readonly pid: number; readonly name: string }[] {
  const found: { pid: number; name: string }[] = [];
  for (let pid = process.ppid; pid > 1 && found.length < 64; ) {
    let stat: string;
    try {
      stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    } catch {
      break;
    }
    const [, name = "", parent = "0"] = /^\d+ \((.*)\) \S (\d+)/s.exec(stat) ?? [];
    found.push({ pid, name });
    pid = Number(parent);
  }
  return found;
}
