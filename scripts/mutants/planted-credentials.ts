/** Faults that let an ended or foreign credential act, and faults that take away a page's bound in bytes. */
import type { Mutant } from "./planted.ts";

const sessions = { file: "../server/auth/sessions.ts", tests: ["test/page/sessions.test.ts"] };
const bulk = { file: "../server/operating/bulk-tasks.ts", tests: ["test/server/bulk-tasks.test.ts"] };
const lost = { file: "../server/mcp/lost-answers.ts", tests: ["test/mcp/presence.test.ts"] };
const pages = ["test/server/page-bytes.test.ts"];
const secrets = ["test/server/secret-files.test.ts"];

export const credentialMutants: readonly Mutant[] = [
  {
    ...sessions,
    name: "sessions: of two the first counts",
    find: "return found === undefined || more.length > 0 ? false : found;",
    replace: "return found === undefined || more.length > 99 ? false : found;",
  },
  {
    ...sessions,
    name: "sessions: a cookie of the same name that is none ends a session",
    find: "shown.flatMap((one) => this.callerIn(one) ?? [])",
    replace: "shown.slice(0, 1).flatMap((one) => this.callerIn(one) ?? [])",
  },
  {
    ...sessions,
    name: "sessions: a copy of the cookie outlives the sign-out",
    find: "(until <= known.through || known.sessions.has(id))",
    replace: "(until <= known.through || known.sessions.has(keyId))",
  },
  {
    ...sessions,
    name: "sessions: the oldest that was signed out comes back",
    find: "known.through = Math.max(known.through, oldest[1]);",
    replace: "known.through = Math.max(known.through, 0);",
  },
  {
    ...bulk,
    name: "bulk operations: one outlives its key",
    find: "if (!mayGoOn()) throw",
    replace: "if (!mayGoOn() && next < 0) throw",
  },
  {
    ...bulk,
    name: "bulk operations: one tenant pushes out another's",
    find: "now - endedAt > keptMs || known.size >= keptMax",
    replace: "now - endedAt > keptMs || id !== tenant",
  },
  {
    ...lost,
    name: "lost answers: another key that says the same gets the first one's",
    find: "[actor.role, actor.agentId, secret?.keyId, tool, input]",
    replace: "[actor.role, actor.agentId, typeof secret, tool, input]",
  },
  {
    ...lost,
    name: "lost answers: a tenant's are without bound",
    find: "if (lost.size > keptMax && oldest",
    replace: "if (lost.size > 1_000 * keptMax && oldest",
  },
  {
    file: "../server/queries/paging.ts",
    tests: pages,
    name: "pages: one of large items is as large as its limit allows",
    find: "if (bytes > bytesMax) return",
    replace: "if (bytes > 1_000 * bytesMax) return",
  },
  {
    file: "../server/queries/history-waits.ts",
    tests: pages,
    name: "pages: one of ended waits is as large as its limit allows",
    find: "bytes += 2 * text.length;",
    replace: "bytes += 2;",
  },
  {
    file: "../store/packed-events.ts",
    tests: pages,
    name: "pages: a portion of events is as large as a commit",
    find: "if (bytes < eventBytesMax) continue;",
    replace: "if (bytes < 1_000 * eventBytesMax) continue;",
  },
  {
    file: "../trust/key-file.ts",
    tests: secrets,
    name: "key files: what is read is not what was judged",
    find: 'readFileSync(handle, "utf8")',
    replace: 'readFileSync(file, "utf8")',
  },
  {
    file: "../server/cluster/secrets.ts",
    tests: secrets,
    name: "master key: what is read is not what was judged",
    find: "return readFileSync(handle);",
    replace: "return readFileSync(file);",
  },
];
