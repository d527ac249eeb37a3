/** The servers that share one PostgreSQL, and which of them leads. */
import { setTimeout as sleep } from "node:timers/promises";
import type { OperationAnswers } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { confirmWithoutKey, yesFlag } from "../confirming.ts";
import { showDuration } from "../durations.ts";
import { untilStopped } from "../stop-signals.ts";
import type { Column } from "../table.ts";

type Cluster = OperationAnswers["get_cluster"];
type Server = Cluster["servers"][number] & { readonly shards: Cluster["shards"] };

const intervalMsDefault = 1_000;
const clearScreen = "\u001b[H\u001b[2J";

const ageOf = (time: string): string => showDuration(Math.max(0, Date.now() - Date.parse(time)));

const columns: readonly Column<Server>[] = [
  { title: "SERVER", cell: ({ url, server_id: id }) => url ?? id, gives: "end" },
  {
    title: "STATE",
    cell: ({ alive, shards, may_lead: mayLead, seen_at: at }) => {
      if (!alive) return `gone for ${ageOf(at)}`;
      if (shards.length > 0) return "leads";
      return mayLead ? "stands by" : "passes on only";
    },
    colour: ({ alive, shards }) => (alive ? (shards.length > 0 ? "green" : null) : "red"),
  },
  { title: "LEADING FOR", cell: ({ shards: [shard] }) => (shard?.since == null ? "-" : ageOf(shard.since)) },
  { title: "EPOCH", cell: ({ shards: [shard] }) => (shard === undefined ? "-" : String(shard.epoch)) },
  { title: "UP FOR", cell: ({ started_at: at }) => ageOf(at) },
  { title: "VERSION", cell: ({ version }) => version },
];

export const commands: readonly Command[] = [
  {
    name: "cluster status",
    summary: "shows the servers on one database, and which of them leads",
    usage: "[--watch]",
    about:
      "The leader decides; the others pass every request on to it, and one of them takes over where it stops. With --watch it shows " +
      "them again whenever something has changed, until it is stopped.",
    flags: {
      watch: { short: "w", words: "keep running, and show changes" },
      interval: { sign: "TIME", words: "with --watch, how often the server is polled [1s]" },
    },
    examples: [
      ["leasehold cluster status", "who leads, since when, in which epoch?"],
      ["leasehold cluster status --watch", "while servers are upgraded one at a time"],
    ],
    run: async (call) => {
      if (!call.isSet("watch")) return void show(call, await call.ask("get_cluster", {}));
      const intervalMs = Math.max(100, call.durationMs("interval") ?? intervalMsDefault);
      await untilStopped(async (signal) => {
        let before = "";
        while (!signal.aborted) {
          const cluster = await call.ask("get_cluster", {});
          const now = leadersOf(cluster);
          if (call.out.isTerminal) call.out.print(`${clearScreen}${words(call, cluster)}`);
          else if (now !== before) show(call, cluster);
          before = now;
          await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
        }
      });
      return undefined;
    },
  },
  {
    name: "cluster resign",
    summary: "lets another server lead",
    about: `The leader finishes what is under way and resigns; another server serves within about a second. Clients connect
again by themselves. Do this before a machine is taken down, if its server is not simply stopped, which resigns too.`,
    flags: { yes: yesFlag },
    examples: [["leasehold cluster resign", "before its machine is restarted"]],
    run: async (call) => {
      await confirmWithoutKey(call, "the leader resigns, and connections to it are closed");
      const answer = await call.ask("resign_leader", {});
      call.out.show(answer, () => `The leader of epoch ${answer.epoch} resigns.`);
      return undefined;
    },
  },
];

function show(call: Call, cluster: Cluster): void {
  call.out.show(cluster, () => words(call, cluster));
}

function words({ out }: Call, { servers, shards }: Cluster): string {
  const rows = servers.map((server) => ({
    ...server,
    shards: shards.filter(({ server_id: id }) => id === server.server_id),
  }));
  return out.table(rows, columns, "No server has reported.");
}

/** What counts as a change for a program that watches: not how long something has lasted. */
function leadersOf({ servers, shards }: Cluster): string {
  return JSON.stringify([
    servers.map(({ server_id: id, alive }) => [id, alive]),
    shards.map(({ server_id: id, epoch }) => [id, epoch]),
  ]);
}
