/** The scrubber, and what was held and who waited at the moment that it is at. */
import { useEffect, useState } from "preact/hooks";
import type { HeldThen, OperationAnswers, WaitedThen } from "../../../src/sdk/wire.ts";
import { call, wordsOf } from "../api/client.ts";
import { serverNow } from "../api/session.ts";
import { AgentLink, Badge, Panel, ResourceName } from "../ui/bits.tsx";
import { place, setQuery } from "../ui/router.ts";
import { count, duration, moment, timeOfDay } from "../ui/words.ts";

const spans = { "15m": 900_000, "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000 } as const;
type Span = keyof typeof spans;

/** Of the range: fine enough to find a moment, and an arrow key moves it by one. */
const stepsMax = 900;

export function Scrubber({ at }: { readonly at: number | null }) {
  const now = serverNow();
  const span = (place.value.query.get("span") ?? "1h") as Span;
  const spanMs = Math.max(spans[span] ?? spans["1h"], at === null ? 0 : now - at);
  const step = Math.max(1_000, Math.round(spanMs / stepsMax / 1_000) * 1_000);
  return (
    <div class="scrubber">
      <label>
        <span>
          {at === null
            ? "Now. Move this back to see what was held, and who waited, then."
            : `${moment(at)}, ${duration(now - at)} ago`}
        </span>
        <input
          type="range"
          min={now - spanMs}
          max={now}
          step={step}
          value={at ?? now}
          aria-valuetext={at === null ? "now" : moment(at)}
          onInput={({ currentTarget }) =>
            setQuery("at", Number(currentTarget.value) >= now - step ? "" : currentTarget.value, true)
          }
        />
      </label>
      <label class="span">
        <span class="visually-hidden">How far back</span>
        <select value={span} onChange={({ currentTarget }) => setQuery("span", currentTarget.value)}>
          {Object.keys(spans).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {at === null ? null : (
        <button type="button" class="button" onClick={() => setQuery("at", "")}>
          Back to now
        </button>
      )}
    </div>
  );
}

interface Then {
  readonly complete: boolean;
  readonly leases: readonly HeldThen[];
  readonly waits: readonly WaitedThen[];
  /** Some are left out: there were more than are read. */
  readonly isCut: boolean;
}

/** While the scrubber moves, only where it comes to rest is asked for. */
const restMs = 120;
const pagesMax = 4;
const listedMax = 300;

async function readThen(at: number, signal: AbortSignal): Promise<Then> {
  const leases = new Map<string, HeldThen>();
  const waits = new Map<string, WaitedThen>();
  let [complete, cursor]: [boolean, string | null] = [true, null];
  for (let page = 0; page < pagesMax; page++) {
    const input = { at: new Date(at).toISOString(), limit: 1_000, cursor };
    const answer: OperationAnswers["get_history"] = await call("get_history", input, signal);
    for (const lease of answer.leases) leases.set(lease.id, lease);
    for (const wait of answer.waits) waits.set(wait.request_id, wait);
    complete &&= answer.complete;
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return { complete, leases: [...leases.values()], waits: [...waits.values()], isCut: cursor !== null };
}

export function Moment({ at }: { readonly at: number }) {
  const [{ found, error }, setState] = useState<{ readonly found: Then | null; readonly error: string | null }>({
    found: null,
    error: null,
  });
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      readThen(at, abort.signal).then(
        (then) => setState({ found: then, error: null }),
        (fault: unknown) => abort.signal.aborted || setState({ found: null, error: wordsOf(fault) }),
      );
    }, restMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [at]);
  if (error !== null) return <p class="error">{error}</p>;
  if (found === null) return <p class="quiet">Reading what was…</p>;
  return (
    <Panel
      title={
        <>
          Held and waiting at {timeOfDay(at)}{" "}
          {found.complete ? (
            <Badge tone="working">complete</Badge>
          ) : (
            <Badge tone="blocked">incomplete: history since then was pruned, some may be missing</Badge>
          )}
        </>
      }
    >
      <div class="pair">
        <div>
          <h3>
            {count(found.leases.length)}
            {found.isCut ? " and more" : ""} {found.leases.length === 1 ? "lease was" : "leases were"} held
          </h3>
          <ul class="plain log">
            {found.leases.slice(0, listedMax).map((lease) => (
              <li key={lease.id}>
                <AgentLink id={lease.agent_id} /> <span class="quiet">{lease.predicate}</span>{" "}
                <ResourceName name={lease.resource} />
              </li>
            ))}
          </ul>
        </div>
        <div>
          <h3>{count(found.waits.length)} waited</h3>
          <ul class="plain log">
            {found.waits.slice(0, listedMax).map((wait) => (
              <li key={wait.request_id}>
                <AgentLink id={wait.agent_id} />{" "}
                {wait.resources.slice(0, 3).map((resource) => (
                  <ResourceName key={resource} name={resource} />
                ))}{" "}
                <span class="quiet">{endOf(wait)}</span>
              </li>
            ))}
          </ul>
        </div>
      </div>
    </Panel>
  );
}

function endOf({ ended_as, ended_at }: WaitedThen): string {
  if (ended_as === null) return "waits still";
  return `${ended_as.replace("_", " ")}${ended_at === null ? "" : ` at ${timeOfDay(ended_at)}`}`;
}
