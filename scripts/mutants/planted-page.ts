/** Faults of the page. Those in dashboard/ are built before their tests run: a server shows what was built. */
import type { Mutant } from "./planted.ts";

const ofActions = ["test/page/actions.test.ts"];
const ofCluster = ["test/page/cluster.test.ts"];
const ofMoments = ["test/page/moment.test.ts"];
const ofScreens = ["test/page/page.test.ts"];
const ofSessions = ["test/page/sessions.test.ts"];

export const pageMutants: readonly Mutant[] = [
  {
    name: "page: a reader sees actions",
    file: "../../dashboard/src/api/session.ts",
    find: 'return role === "operator" || role === "supervisor";',
    replace: "return role !== undefined;",
    tests: ofActions,
  },
  {
    name: "page: a supervisor is offered what only operators may do",
    file: "../../dashboard/src/api/session.ts",
    find: 'computed(() => session.value?.role === "operator")',
    replace: "computed(() => isAbove.value)",
    tests: ofCluster,
  },
  {
    name: "page: the summary of a task is HTML",
    file: "../../dashboard/src/screens/tasks.tsx",
    find: "<span>{task.task_summary}</span>",
    replace: '<span dangerouslySetInnerHTML={{ __html: task.task_summary ?? "" }} />',
    tests: ofScreens,
  },
  {
    name: "page: the scrubber shows a moment as complete though some of it was pruned",
    file: "../../dashboard/src/screens/moment.tsx",
    find: "complete &&= answer.complete;",
    replace: "complete &&= true;",
    tests: ofMoments,
  },
  {
    name: "page: the leader is asked to resign where nobody else could lead",
    file: "../../dashboard/src/screens/cluster.tsx",
    find: " || !hasSuccessor)",
    replace: " || (hasSuccessor && false))",
    tests: ofCluster,
  },
  {
    name: "page: the session's cookie goes with what other sites ask for",
    file: "../server/auth/sessions.ts",
    find: "HttpOnly; SameSite=Strict",
    replace: "HttpOnly",
    tests: ofSessions,
  },
  {
    name: "page: the page of an allowed origin acts with the session",
    file: "../server/http/http.ts",
    find: "if (headers.origin !== undefined && gate.lets(headers.origin)) return false;",
    replace: "void gate;",
    tests: ofSessions,
  },
  {
    name: "page: the session's token is asked of nobody",
    file: "../server/http/http.ts",
    find: 'return method === "GET" || method === "HEAD" ||',
    replace: 'return method !== "TRACE" ||',
    tests: ofSessions,
  },
];
