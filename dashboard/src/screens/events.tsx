/** What happened, as it happens, and a scrubber: choose a moment and see what was held and who waited then. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { isMissing, request, wordsOf } from "../api/client.ts";
import { serverNow } from "../api/session.ts";
import { recent, recentVersion } from "../live/store.ts";
import type { LiveEvent } from "../live/stream.ts";
import { AgentLink, Badge, Chips, Json, Panel, ResourceName, Screen, Search } from "../ui/bits.tsx";
import { place, setQuery } from "../ui/router.ts";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count, duration, moment, timeOfDay } from "../ui/words.ts";
import { eventText, eventWords } from "./event-words.ts";

const nouns = ["lease", "request", "agent", "task", "receipt", "resource", "cell", "audit"];
const chosen = signal<LiveEvent | null>(null);

export function EventsScreen() {
  const { query } = place.value;
  const [noun, search, agent, at] = [
    query.get("noun") ?? "",
    (query.get("q") ?? "").toLowerCase(),
    query.get("agent") ?? "",
    query.get("at"),
  ];
  recentVersion.value;
  const shown = recent
    .filter(
      (event) =>
        (noun === "" || event.type.startsWith(`${noun}.`)) && (search === "" || eventText(event).includes(search)),
    )
    .filter((event) => agent === "" || eventText(event).includes(`"agent_id":${JSON.stringify(agent).toLowerCase()}`))
    .reverse();
  return (
    <Screen
      title="Events"
      tools={
        <>
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
          {count(shown.length)} of the last {count(recent.length)}
        </span>
      </div>
      <div class="split wide-left">
        <VirtualList
          items={shown}
          rowHeight={30}
          keyOf={({ seq }) => String(seq)}
          label="Events, newest first"
          empty={<p>No event matches.</p>}
          row={(event) => (
            <button
              type="button"
              class="event-row"
              aria-pressed={chosen.value?.seq === event.seq}
              onClick={() => (chosen.value = event)}
            >
              <time class="mono quiet">{timeOfDay(event.at)}</time>
              <span class={`event-type ${event.type.replace(".", "-")}`}>{event.type}</span>
              <span class="event-words">{eventWords(event).slice(event.type.length)}</span>
            </button>
          )}
        />
        {chosen.value === null ? null : (
          <Panel
            title={chosen.value.type}
            actions={
              <button
                type="button"
                class="button"
                onClick={() => setQuery("at", String(Date.parse(chosen.value?.at ?? "")))}
              >
                See this moment
              </button>
            }
          >
            <Json value={chosen.value} />
          </Panel>
        )}
      </div>
    </Screen>
  );
}

/** The last hour; finer steps are made with the arrow keys. */
const spanMs = 3_600_000;

function Scrubber({ at }: { readonly at: number | null }) {
  const now = serverNow();
  const value = at ?? now;
  return (
    <div class="scrubber">
      <label>
        <span>
          {at === null ? "Now. Move this back to see what was held then" : `${moment(at)}, ${duration(now - at)} ago`}
        </span>
        <input
          type="range"
          min={now - spanMs}
          max={now}
          step={1_000}
          value={value}
          aria-valuetext={at === null ? "now" : moment(at)}
          onInput={({ currentTarget }) =>
            setQuery("at", Number(currentTarget.value) >= now - 1_500 ? "" : currentTarget.value, true)
          }
        />
      </label>
      {at === null ? null : (
        <button type="button" class="button" onClick={() => setQuery("at", "")}>
          Back to now
        </button>
      )}
    </div>
  );
}

interface History {
  readonly at: string;
  readonly complete: boolean;
  readonly leases: readonly {
    readonly id: string;
    readonly agent_id: string;
    readonly resource: string;
    readonly predicate: string;
  }[];
  readonly requests?: readonly {
    readonly request_id: string;
    readonly agent_id: string;
    readonly intents: readonly { readonly resource: string }[];
  }[];
}

const waitMs = 120;

function Moment({ at }: { readonly at: number }) {
  const [state, setState] = useState<{ readonly history: History | null; readonly error: string | null }>({
    history: null,
    error: null,
  });
  useEffect(() => {
    const abort = new AbortController();
    // While the scrubber moves, only where it comes to rest is asked for.
    const timer = setTimeout(() => {
      request("GET", "/v1/history", { at: new Date(at).toISOString(), limit: 1_000 }, abort.signal).then(
        (history) => setState({ history: history as History, error: null }),
        (error: unknown) => {
          if (abort.signal.aborted) return;
          setState({
            history: null,
            error: isMissing(error) ? "This server does not answer what was held at a moment." : wordsOf(error),
          });
        },
      );
    }, waitMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [at]);
  const { history, error } = state;
  if (error !== null) return <p class="error">{error}</p>;
  if (history === null) return <p class="quiet">Reading…</p>;
  const requests = history.requests ?? [];
  return (
    <Panel
      title={
        <>
          Held and waiting at {timeOfDay(at)}{" "}
          {history.complete ? null : <Badge tone="blocked">incomplete: older history was pruned</Badge>}
        </>
      }
    >
      <div class="pair">
        <div>
          <h3>{count(history.leases.length)} leases</h3>
          <ul class="plain log">
            {history.leases.slice(0, 200).map((lease) => (
              <li key={lease.id}>
                <AgentLink id={lease.agent_id} /> <span class="quiet">{lease.predicate}</span>{" "}
                <ResourceName name={lease.resource} />
              </li>
            ))}
          </ul>
        </div>
        <div>
          <h3>{count(requests.length)} waited</h3>
          <ul class="plain log">
            {requests.slice(0, 200).map(({ request_id, agent_id, intents }) => (
              <li key={request_id}>
                <AgentLink id={agent_id} />{" "}
                {intents.map(({ resource }) => (
                  <ResourceName key={resource} name={resource} />
                ))}
              </li>
            ))}
          </ul>
        </div>
      </div>
    </Panel>
  );
}
