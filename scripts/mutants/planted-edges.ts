/** Faults outside the kernel: who leads, browsers' sessions, the guards' helper, `leasehold top`, traces. */
import type { Mutant } from "./planted.ts";
import { credentialMutants } from "./planted-credentials.ts";
import { pageMutants } from "./planted-page.ts";
import { passingOnMutants } from "./planted-passing-on.ts";
import { shardMutants } from "./planted-shards.ts";

const ofLeadership = ["src/engine/leadership.test.ts"];
const ofSessions = ["test/page/sessions.test.ts"];
const ofTheHelper = ["test/guard/identity.test.ts"];
const ofTheScript = ["test/guard/shell-hook.test.ts"];
const ofTop = ["src/cli/top/top.test.ts"];
const ofCompletion = ["test/cli/completion.test.ts"];
const ofTraces = ["test/server/traceparent.test.ts"];
const ofSpans = ["test/server/tracing.test.ts"];

export const edgeMutants: readonly Mutant[] = [
  ...credentialMutants,
  ...passingOnMutants,
  ...shardMutants,
  ...pageMutants,
  {
    name: "leadership: a leader answers until the last moment of its lease",
    file: "../engine/leadership.ts",
    find: "lastsMs * (1 - marginShare)",
    replace: "lastsMs",
    tests: ofLeadership,
  },
  {
    name: "leadership: a lease is counted from when its answer came",
    file: "../engine/leadership.ts",
    find: "this.#goodUntil = askedAt +",
    replace: "void askedAt;\n    this.#goodUntil = performance.now() +",
    tests: ofLeadership,
  },
  {
    name: "leadership: a renewal that failed is not tried again",
    file: "../engine/leadership.ts",
    find: "else this.#renewIn(retryMs);",
    replace: 'else this.#end("deposed");',
    tests: ofLeadership,
  },
  {
    name: "leadership: a server that may not lead campaigns",
    file: "../engine/leadership.ts",
    find: "return mayLead && performance.now()",
    replace: "return performance.now()",
    tests: ofLeadership,
  },
  {
    name: "leadership: a deposed leader learns it only when its lease runs out",
    file: "../engine/leadership.ts",
    find: 'fault.code === "stale_epoch") this.#end("deposed");',
    replace: 'fault.code === "stale_epoch") this.#renewIn(retryMs);',
    tests: ofLeadership,
  },
  {
    name: "leadership: a term that failed still answers what is under way",
    file: "../engine/leadership.ts",
    find: 'if (event === "resign") await Promise.race',
    replace: 'if (event !== "deposed") await Promise.race',
    tests: ofLeadership,
  },
  {
    name: "leadership: a lost election is won",
    file: "../engine/leadership.ts",
    find: 'won: "loading", lost: "standby"',
    replace: 'won: "loading", lost: "loading"',
    tests: ofLeadership,
  },

  {
    name: "sessions: what was added to a cookie is not noticed",
    file: "../server/auth/sessions.ts",
    find: ' || !isSame(shown.slice(end + 1), this.sum("session", named))',
    replace: "",
    tests: ofSessions,
  },
  {
    name: "sessions: scripts may read the cookie",
    file: "../server/auth/sessions.ts",
    find: "HttpOnly; SameSite=Strict",
    replace: "SameSite=Strict",
    tests: ofSessions,
  },
  {
    name: "sessions: a link signs in again and again",
    file: "../server/auth/sessions.ts",
    find: "      links.delete(id);\n      return this.callerOf",
    replace: "      return this.callerOf",
    tests: ofSessions,
  },
  {
    name: "sessions: an agent's token makes a link for the key that drew it",
    file: "../server/auth/sessions.ts",
    find: "return actor.agentId === null ? secret : null;",
    replace: "void actor;\n    return secret;",
    tests: ofSessions,
  },
  {
    name: "sessions: a cookie alone may write",
    file: "../server/http/http.ts",
    find: ' || isSame(String(headers[csrfHeader] ?? ""), csrf);',
    replace: " || isSame(String(headers[csrfHeader] ?? csrf), csrf);",
    tests: ofSessions,
  },

  {
    name: "helper: what a killed session held stays held",
    file: "../guard/resident/sessions.ts",
    find: "watched.hooksOfTool > 1 && !isAlive(tool)",
    replace: "watched.hooksOfTool > 1_000 && !isAlive(tool)",
    tests: ofTheHelper,
  },
  {
    name: "helper: a user's interruption is not read",
    file: "../guard/resident/transcript.ts",
    find: '"user"/.test(line) && line.includes(mark);',
    replace: '"user"/.test(line) && line.startsWith(mark);',
    tests: ofTheHelper,
  },

  {
    name: "helper: a no without words is a yes for the script",
    file: "../guard/resident/shell-calls.ts",
    find: "2: 422 };",
    replace: "2: 200 };",
    tests: ofTheScript,
  },
  {
    name: "helper: a script that its tool has ended counts as answered",
    file: "../guard/resident/shell-calls.ts",
    find: "isGone || hasEnded(call.pid)",
    replace: "isGone",
    tests: ofTheScript,
  },

  {
    name: "top: any key revokes what the user was asked about",
    file: "../cli/top/state.ts",
    find: 'action: isYes ? "revoke" : null,',
    replace: 'action: "revoke",',
    tests: ofTop,
  },
  {
    name: "top: a wait can be revoked like a lease",
    file: "../cli/top/state.ts",
    find: "? still({ asks: item.lease.id })",
    replace: '? still({ asks: item.lease.id })\n        : item?.type === "wait"\n        ? still({ asks: "1" })',
    tests: ofTop,
  },
  {
    name: "top: a filter sees capital letters",
    file: "../cli/top/rows.ts",
    find: 'return words.join(" ").toLowerCase();',
    replace: 'return words.join(" ");',
    tests: ofTop,
  },
  {
    name: "top: rates count what is long ago",
    file: "../cli/top/model.ts",
    find: "this.buckets = this.buckets.filter(({ at }) => now - at < windowMs);",
    replace: "",
    tests: ofTop,
  },

  {
    name: "traceparent: version ff is read",
    file: "../protocol/tasks/traceparent.ts",
    find: "(?!00|ff)",
    replace: "(?!00)",
    tests: ofTraces,
  },
  {
    name: "traceparent: the request's comes before the task's own",
    file: "../protocol/tasks/traceparent.ts",
    find: '(task["traceparent"] ?? null) === null ? {',
    replace: "task !== null ? {",
    tests: ofTraces,
  },
  {
    name: "traceparent: flags of a later version are kept",
    file: "../protocol/tasks/traceparent.ts",
    find: "Number.parseInt(flags, 16) & sampled",
    replace: "Number.parseInt(flags, 16) % (16 * sampled)",
    tests: ofTraces,
  },
  {
    name: "traceparent: the tasks of a batch get none",
    file: "../protocol/tasks/traceparent.ts",
    find: "(isObject(task) ? traced(task, traceparent) : task)",
    replace: "(isObject(task) ? task : traced({}, traceparent))",
    tests: ofTraces,
  },
  {
    name: "metrics: a value on a bound is counted beyond it",
    file: "../server/operating/histogram.ts",
    find: "value > (bounds[at] ?? 0)",
    replace: "value >= (bounds[at] ?? 0)",
    tests: ["src/server/operating/histogram.test.ts"],
  },
  {
    name: "spans: a task's has no parent",
    file: "../server/operating/tracing.ts",
    find: "const parent = this.contextOf(spec.traceparent, ROOT_CONTEXT);",
    replace: "const parent = ROOT_CONTEXT;",
    tests: ofSpans,
  },
  {
    name: "spans: a commit has written nothing",
    file: "../server/operating/tracing.ts",
    find: '"leasehold.rows": rows,',
    replace: '"leasehold.rows": 0 * rows,',
    tests: ofSpans,
  },
  {
    name: "completion: bash runs what another agent called a file",
    file: "../cli/completion-scripts.ts",
    find: `printf -v quoted '%q' "`,
    replace: `eval quoted="`,
    tests: ofCompletion,
  },
  {
    name: "completion: a server that is silent is waited for",
    file: "../cli/completing.ts",
    find: "const answerMs = 700;",
    replace: "const answerMs = 7_000;",
    tests: ofCompletion,
  },
  {
    name: "completion: the server that the line names is not asked",
    file: "../cli/completing.ts",
    find: "readAddress(line, environment, cwd)",
    replace: "readAddress({ ...line, texts: () => [], text: () => null, isSet: () => false }, environment, cwd)",
    tests: ofCompletion,
  },
  {
    name: "cells: what a command printed is read before it has arrived",
    file: "../cell/run-command.ts",
    find: "setImmediate(() => setImmediate(() => resolve({ code, by })))",
    replace: "setImmediate(() => resolve({ code, by }))",
    tests: ["src/cell/run-command.test.ts"],
  },
  {
    name: "batches: all items of a call are decided in one turn of the loop",
    file: "../server/answering/slices.ts",
    find: "Math.min(next + itemsPerTurn, count)",
    replace: "Math.max(next + itemsPerTurn, count)",
    tests: ["src/server/answering/slices.test.ts"],
  },
  {
    name: "guards: the helper waits for one session's server before it turns to the next",
    file: "../guard/resident/sessions.ts",
    find: "if (this.#underWay.has(folder)) continue;",
    replace: "if (this.#underWay.size > 0) continue;",
    tests: ["src/guard/resident/sessions.test.ts"],
  },
  {
    name: "MCP: what is granted to a model that stood by is not kept while it thinks",
    file: "../server/mcp/control-plane.ts",
    find: 'const waits = verdict === "WAIT" || verdict === "STANDBY";',
    replace: 'const waits = verdict === "WAIT";',
    tests: ["test/mcp/presence.test.ts"],
  },
  {
    name: "paging: remembered pages keep the memory that was dropped",
    file: "../server/queries/paging.ts",
    find: "of: new WeakRef(of)",
    replace: "of: { deref: () => of } as WeakRef<object>",
    tests: ["test/server/paging.test.ts"],
  },
];
