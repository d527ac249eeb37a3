/** What happened, as it happens, and a scrubber: choose a moment and see what was held and who waited then. */
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { EventType } from "../../../src/sdk/wire.ts";
import { concerns, eventText } from "../live/event-text.ts";
import { OlderEvents } from "../live/older-events.ts";
import { recent, recentVersion } from "../live/store.ts";
import type { LiveEvent } from "../live/stream.ts";
import { Chips, Json, Panel, Screen, Search } from "../ui/bits.tsx";
import { hrefOf, place, setQuery } from "../ui/router.ts";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count, timeOfDay } from "../ui/words.ts";
import { eventWords } from "./event-words.ts";
import { Moment, Scrubber } from "./moment.tsx";

const nouns = ["lease", "request", "agent", "task", "receipt", "resource", "cell", "audit"];
const types: readonly EventType[] = [
  ...(["lease.granted", "lease.released", "lease.expired", "lease.revoked", "lease.transferred"] as const),
  ...(["lease.violated", "request.waiting", "request.standing_by", "request.granted", "request.died"] as const),
  ...(["request.timed_out", "agent.registered", "agent.transitioned", "agent.paused", "resource.fenced"] as const),
  ...(["resource.reset", "cell.gone", "task.created", "task.accepted", "task.completed", "task.escalated"] as const),
];
const chosen = signal<LiveEvent | null>(null);

export function EventsScreen() {
  const { query } = place.value;
  const filter = {
    noun: query.get("noun") ?? "",
    type: query.get("type") ?? "",
    agent: query.get("agent") ?? "",
    search: (query.get("q") ?? "").toLowerCase(),
  };
  const at = query.get("at");
  recentVersion.value;
  const older = useOlder(filter.type, filter.agent);
  const matches = (event: LiveEvent): boolean =>
    (filter.noun === "" || event.type.startsWith(`${filter.noun}.`)) &&
    (filter.type === "" || event.type.startsWith(filter.type)) &&
    (filter.agent === "" || concerns(event, filter.agent)) &&
    (filter.search === "" || eventText(event).includes(filter.search));
  const shown = [...older.events.value, ...recent].filter(matches).reverse();
  return (
    <Screen
      title="Events"
      tools={
        <>
          <Search name="type" label="Type" suggestions={types} />
          <Search name="agent" label="Agent" />
          <Search label="Anything in the event" />
        </>
      }
    >
      <Scrubber at={at === null ? null : Number(at)} />
      {at === null ? null : <Moment at={Number(at)} />}
      <div class="strip">
        <Chips name="noun" label="Kind" chips={nouns.map((value) => ({ value, label: value }))} />
        <span class="quiet">
          {count(shown.length)} of the last {count(recent.length + older.events.value.length)}
          {older.end.value === null ? (
            <>
              {" · "}
              <button type="button" class="link" onClick={() => void older.readMore()}>
                read older ones
              </button>
            </>
          ) : null}
        </span>
      </div>
      <div class="split wide-left">
        <VirtualList
          items={shown}
          rowHeight={28}
          keyOf={({ seq }) => String(seq)}
          label="Events, newest first"
          empty={<p>No event matches. {older.end.value}</p>}
          row={(event) => <EventRow event={event} />}
        />
        {chosen.value === null ? null : <EventPanel event={chosen.value} />}
      </div>
    </Screen>
  );
}

/** Another filter starts the list again: the server has chosen by the old one. */
function useOlder(type: string, agent: string): OlderEvents {
  return useMemo(
    () => new OlderEvents({ types: types.filter((one) => one === type), agentId: agent }, recent[0]?.seq ?? 1),
    [type, agent],
  );
}

function EventRow({ event }: { readonly event: LiveEvent }) {
  return (
    <button
      type="button"
      class="event-row"
      aria-pressed={chosen.value?.seq === event.seq}
      onClick={() => (chosen.value = chosen.value?.seq === event.seq ? null : event)}
    >
      <time class="mono quiet">{timeOfDay(event.at)}</time>
      <span class={`event-type ${event.type.replace(".", "-")}`}>{event.type}</span>
      <span class="event-words">{eventWords(event)}</span>
    </button>
  );
}

function EventPanel({ event }: { readonly event: LiveEvent }) {
  const task = event["task_id"];
  return (
    <Panel
      title={event.type}
      actions={
        <>
          {typeof task === "string" ? <a href={hrefOf(["tasks", task])}>The task</a> : null}
          <button type="button" class="button" onClick={() => setQuery("at", String(Date.parse(event.at)))}>
            See this moment
          </button>
        </>
      }
    >
      <Json value={event} />
    </Panel>
  );
}
