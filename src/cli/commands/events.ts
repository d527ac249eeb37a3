/** What happens, as it happens or from history. */
import { eventTypes } from "../../protocol/schema/vocabulary.ts";
import type { Client } from "../../sdk/client.ts";
import { errorOf } from "../../sdk/errors.ts";
import { type EventsOptions, followEvents, type LeaseholdEvent } from "../../sdk/events.ts";
import type { EventType } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { eventLine } from "../event-words.ts";
import { isServerError, UsageProblem } from "../problem.ts";
import { untilStopped } from "../stop-signals.ts";

const eventsCommand: Command = {
  name: "events",
  summary: "shows what has happened, and with -f what happens",
  usage: "[-f] [-n N] [--since N] [--type TYPE] [--resource RES] [--agent ID]",
  about: `Without -f it shows history and ends; with -f it begins now, or after --since, and goes on through any break of the
connection without a gap. The first figure of a line is the number to go on after.`,
  flags: {
    follow: { short: "f", words: "go on with what happens" },
    since: { sign: "N", words: "only what came after this number" },
    type: { sign: "TYPE", words: "only of this type, such as lease.granted", many: true, choices: eventTypes },
    resource: { sign: "RES", words: "only what overlaps with this name" },
    agent: { sign: "ID", names: "agent", words: "only of this agent" },
    number: { short: "n", sign: "N", words: "only the last N of history [20 on a terminal, all in a pipe]" },
    limit: { sign: "N", words: "end after N events" },
  },
  examples: [
    ["leasehold events -f", "watch"],
    ["leasehold events -n 50", "the last fifty"],
    ["leasehold events -f --type lease.revoked --type lease.expired --json", "for a script"],
    ["leasehold events --resource src/auth.ts", "who had this file?"],
  ],
  run: async (call) => {
    const { out } = call;
    const isFollowing = call.isSet("follow");
    const types = call.texts("type").map(readType);
    const resource = call.text("resource");
    const limit = call.integer("limit", 1) ?? Number.POSITIVE_INFINITY;
    const since = call.integer("since") ?? (isFollowing ? undefined : 0);
    const name = resource === null ? undefined : call.resource(resource);
    const client = await call.connect();
    const query = {
      since,
      types: types.length > 0 ? types : undefined,
      resource: name,
      agentId: call.text("agent") ?? undefined,
    };
    await untilStopped(async (signal) => {
      let shown = 0;
      // A server that is not there is reported now; one that goes away later is waited for.
      if (isFollowing) await call.ask("readyz", {});
      const onReconnect = () => out.note("the connection broke; it goes on where it was");
      const history = (): AsyncGenerator<LeaseholdEvent, void> => remembered(call, client, { ...query, signal });
      const events = isFollowing
        ? followEvents(client, { ...query, signal, onReconnect })
        : lastOnes(history(), lastCount(call));
      try {
        for await (const event of events) {
          if (out.isJson) out.json(event);
          else out.print(eventLine(event, out.paint));
          if (++shown >= limit) return;
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    });
  },
};

const shownDefault = 20;

/** How many of the last events are shown; all where a beginning or a limit is given. */
function lastCount(call: Call): number {
  const isAll = call.text("since") !== null || call.text("limit") !== null || !call.out.isTerminal;
  return call.integer("number", 1) ?? (isAll ? Number.POSITIVE_INFINITY : shownDefault);
}

async function* lastOnes(events: AsyncGenerator<LeaseholdEvent, void>, count: number) {
  if (count === Number.POSITIVE_INFINITY) return yield* events;
  const last: LeaseholdEvent[] = [];
  for await (const event of events) if (last.push(event) > count) last.shift();
  yield* last;
}

/** Where nobody asked for a particular beginning, what is left of history is what there is. */
async function* remembered(call: Call, client: Client, query: EventsOptions): AsyncGenerator<LeaseholdEvent, void> {
  try {
    yield* readHistory(client, query);
  } catch (error) {
    const earliest = call.text("since") === null ? earliestOf(error) : null;
    if (earliest === null) throw error;
    yield* readHistory(client, { ...query, since: earliest - 1 });
  }
}

/** What has happened so far: the server sends all of it and ends, so that its end is certain and nobody need wait for it. */
async function* readHistory(client: Client, query: EventsOptions): AsyncGenerator<LeaseholdEvent, void> {
  const { since, types, resource, agentId, signal } = query;
  const asked = new URLSearchParams({ since: String(since), follow: "false" });
  if (types !== undefined) asked.set("types", types.join(","));
  if (resource !== undefined) asked.set("resource", resource);
  if (agentId !== undefined) asked.set("agent_id", agentId);
  const response = await client.fetch(`/v1/events?${asked}`, {}, { signal });
  if (!response.ok || response.body === null) throw errorOf(response.status, await response.json().catch(() => null));
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const frames = `${rest}${text}`.split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const [, id, data] = /^id: (\d+)$[\s\S]*^data: (.+)$/m.exec(frame) ?? [];
      if (data !== undefined) yield { ...(JSON.parse(data) as LeaseholdEvent), seq: Number(id) };
    }
  }
}

function readType(text: string): EventType {
  const found = eventTypes.find((one) => one === text);
  if (found !== undefined) return found;
  throw new UsageProblem(`"${text}" is not a type of event; there are ${eventTypes.join(", ")}`);
}

function earliestOf(error: unknown): number | null {
  if (!isServerError(error) || error.code !== "history_pruned") return null;
  const { earliest } = (error.body ?? {}) as { readonly earliest?: unknown };
  return typeof earliest === "number" ? earliest : null;
}

export const commands: readonly Command[] = [eventsCommand];
