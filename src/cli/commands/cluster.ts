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
      if (shards.length > 1) return `leads ${shards.length}`;
      if (shards.length > 0) return "leads";
      return mayLead ? "stands by" : "passes on only";
    },
    colour: ({ alive, shards }) => (alive ? (shards.length > 0 ? "green" : null) : "red"),
  },
  { title: "LEADING FOR", cell: ({ shards }) => (shards.length === 0 ? "-" : ageOf(longest(shards))) },
  { title: "EPOCH", cell: ({ shards: [shard] }) => (shard === undefined ? "-" : String(shard.epoch)) },
  { title: "UP FOR", cell: ({ started_at: at }) => ageOf(at) },
  { title: "VERSION", cell: ({ version }) => version },
];

/** With several shards an epoch alone says nothing. */
const columnsOfMany: readonly Column<Server>[] = columns.map((column) =>
  column.title === "EPOCH"
    ? {
        title: "SHARDS",
        cell: ({ shards }) => (shards.length === 0 ? "-" : shards.map(({ shard }) => shard).join(" ")),
        gives: "end",
      }
    : column,
);

function longest(shards: Cluster["shards"]): string {
  return shards.map(({ since }) => since ?? "").reduce((one, other) => (one < other ? one : other));
}

export const commands: readonly Command[] = [
  {
    name: "cluster status",
    summary: "shows the servers on one database, and which of them leads",
    usage: "[--watch]",
    about:
      "A leader decides; the others pass every request on to it, and one of them takes over where it stops. With several shards " +
      "each has its own leader, and SHARDS says which a server leads. With --watch it shows " +
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
    summary: "lets other servers lead",
    usage: "[--server ID|--shard N]",
    about: `A leader finishes what is under way and resigns; another server serves within about a second. Clients connect
again by themselves. Do this before a machine is taken down, if its server is not simply stopped, which resigns too. Of several
shards it is all that the server leads; it is given no others for half a minute.`,
    flags: {
      server: { sign: "ID", words: "the server, by its URL or id [the one that answers]" },
      shard: { sign: "N", words: "only this shard, of any server" },
      yes: yesFlag,
    },
    examples: [
      ["leasehold cluster resign", "before its machine is restarted"],
      ["leasehold cluster resign --server https://b.example.com:7117", "of that server"],
    ],
    run: async (call) => {
      const named = call.text("server");
      const shard = call.isSet("shard") ? call.integer("shard", 0, shardMax) : null;
      const server = named === null ? null : await serverNamed(call, named);
      await confirmWithoutKey(call, "the leader resigns, and connections to it are closed");
      const asked = { ...(server !== null && { server_id: server }), ...(shard !== null && { shard }) };
      const answer = await call.ask("resign_leader", asked);
      const { epoch, shards } = answer;
      call.out.show(answer, () =>
        shards.length === 1
          ? `The leader of epoch ${epoch} resigns.`
          : `The leader of shards ${shards.join(", ")} resigns.`,
      );
      return undefined;
    },
  },
];

const shardMax = 1_000;

async function serverNamed(call: Call, named: string): Promise<string> {
  const { servers } = await call.ask("get_cluster", {});
  return servers.find(({ url, server_id: id }) => url === named || id === named)?.server_id ?? named;
}

function show(call: Call, cluster: Cluster): void {
  call.out.show(cluster, () => words(call, cluster));
}

function words({ out }: Call, { servers, shards }: Cluster): string {
  const vacant = shards.filter(({ server_id: id }) => id === null).map(({ shard }) => shard);
  const rows = servers.map((server) => ({
    ...server,
    shards: shards.filter(({ server_id: id }) => id === server.server_id),
  }));
  const table = out.table(rows, shards.length > 1 ? columnsOfMany : columns, "No server has reported.");
  return vacant.length === 0 || shards.length === 1 ? table : `${table}\nNobody leads shard ${vacant.join(", ")}.`;
}

/** What counts as a change for a program that watches: not how long something has lasted. */
function leadersOf({ servers, shards }: Cluster): string {
  return JSON.stringify([
    servers.map(({ server_id: id, alive }) => [id, alive]),
    shards.map(({ server_id: id, epoch }) => [id, epoch]),
  ]);
}
