/** What `leasehold` does without a command: a server for this user, and what to do next. And how things stand. */
import { openBrowser } from "../browser.ts";
import type { Call, Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { plain } from "../plain-text.ts";
import { Failure, isServerError } from "../problem.ts";
import { isLeasehold } from "../reaching.ts";
import { repositoryAt } from "../resource-names.ts";
import { serve } from "./serve.ts";

const startCommand: Command = {
  name: "start",
  summary: "starts a server for this user, or says that one runs; what `leasehold` alone does",
  about: `The server listens on this machine only, and keeps its data in ~/.leasehold/data (or LEASEHOLD_DATA). It runs until
Ctrl-C. \`leasehold serve\` has all settings. Where a server answers already, it says how things stand there.`,
  examples: [["npx leasehold", "the first command to give"]],
  run: async (call) => {
    const answers = await Promise.all(call.address.urls.map(isLeasehold));
    if (answers.includes(true)) return void (await showStatus(call));
    if (answers.length > 1)
      throw new Failure(`none of ${call.address.urls.join(", ")} answers; start one of them`, exitCodes.unavailable);
    const { hostname, port, protocol } = new URL(call.url);
    const { isLoopback } = await import("../../trust/loopback.ts");
    if (!isLoopback(hostname) || protocol !== "http:") {
      throw new Failure(`no server answers at ${call.url}, which is not on this machine`, exitCodes.unavailable);
    }
    const given = { host: hostname.replace(/^\[|\]$/g, ""), port: port || "80", "log-level": "warn" };
    return serve(call, given, { mayAccept: false, onListening: (url) => welcome(call, url) });
  },
};

/** Three more lines: what it is, what to do next, and where to see it. */
function welcome({ out, environment }: Call, url: string): () => void {
  const program = programName(environment);
  const canOpen = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const { bold } = out.paint;
  out.print(
    [
      "It grants leases on files, tasks and resources, so that AI agents and workers do not overwrite each other's work.",
      `Next: run ${bold(`${program} init`)} in a repository and open two coding agents there, or try ${bold(`${program} run src/ -- make`)}.`,
      `See who holds what: ${bold(`${url}/`)}${canOpen ? " (press Enter to open it)" : ""}, or ${bold(`${program} top`)}. Ctrl-C stops the server.`,
    ].join("\n"),
  );
  if (!canOpen) return () => undefined;
  // Where no browser can be started, the address is on the screen.
  const open = (): void => void openBrowser(`${url}/`);
  process.stdin.on("data", open);
  return () => {
    process.stdin.off("data", open);
    process.stdin.pause();
  };
}

/** As the user has to type it. */
export function programName({ npm_command: command }: Call["environment"]): string {
  return command === "exec" ? "npx leasehold" : "leasehold";
}

interface Status {
  readonly url: string;
  readonly version: string;
  readonly repository: string | null;
  readonly leases: number | null;
  readonly waiting: number | null;
  readonly agents: number | null;
  readonly tasks: number | null;
}

async function showStatus(call: Call): Promise<void> {
  const { out, url } = call;
  const repository = repositoryAt(call.cwd)?.name ?? null;
  const program = programName(call.environment);
  const [{ version }, figures] = await Promise.all([call.ask("openapi", {}).then(versionOf), figuresOf(call)]);
  const status: Status = { url, version, repository, ...figures };
  out.show(status, () => {
    const { leases, waiting, agents, tasks } = figures;
    const fleet =
      leases === null
        ? "This key may not see what is held."
        : `${counted(leases, "lease")}, ${waiting} waiting, ${counted(agents ?? 0, "agent")}, ${counted(tasks ?? 0, "live task")}; \`${program} ls\` and \`${program} top\` show them.`;
    const names =
      repository === null
        ? `This folder is not in a repository; run \`${program} init\` in one.`
        : `Files here are FILE:/${repository}/…; \`${program} init\` sets the repository up for coding agents.`;
    return [`Leasehold ${plain(version)} answers at ${url}; its page is ${url}/`, fleet, names].join("\n");
  });
}

function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function versionOf(document: unknown): { readonly version: string } {
  const { version } = (document as { readonly info?: { readonly version?: unknown } }).info ?? {};
  return { version: typeof version === "string" ? version : "of an unknown version" };
}

const figureMax = 1_000;
const ended = ["COMPLETED", "ABORTED"];

/** Null where this key may not look. */
async function figuresOf(call: Call): Promise<Pick<Status, "leases" | "waiting" | "agents" | "tasks">> {
  const limit = figureMax;
  try {
    const [{ leases }, { requests }, { agents }, { tasks }] = await Promise.all([
      call.ask("list_leases", { limit, state: "ACTIVE" }),
      call.ask("list_requests", { limit }),
      call.ask("list_agents", { limit }),
      call.ask("list_tasks", { limit }),
    ]);
    const live = tasks.filter(({ status }) => !["succeeded", "failed", "canceled", "dead"].includes(status));
    return {
      leases: leases.length,
      waiting: requests.length,
      agents: agents.filter(({ state }) => !ended.includes(state)).length,
      tasks: live.length,
    };
  } catch (error) {
    if (!isServerError(error) || (error.code !== "forbidden" && error.code !== "unauthorized")) throw error;
    return { leases: null, waiting: null, agents: null, tasks: null };
  }
}

export const commands: readonly Command[] = [
  startCommand,
  {
    name: "status",
    summary: "says whether a server answers, how much is held, and what files are called here",
    examples: [["leasehold status", "is all well?"]],
    run: async (call) => void (await showStatus(call)),
  },
  {
    name: "version",
    summary: "shows the version, and of which Node",
    offline: true,
    examples: [["leasehold version", "the same as -v, and Node's"]],
    run: async (call) => {
      const { version } = await import("../../server/config/version.ts");
      const { node } = process.versions;
      call.out.show({ version, node, platform: `${process.platform}-${process.arch}` }, () => {
        return `leasehold ${version} (Node ${node}, ${process.platform}-${process.arch})`;
      });
    },
  },
];
