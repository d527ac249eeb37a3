/** Whether the fleet flows: five counts, what happens how often, and each agent as a lane. */
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Activity, Lane } from "../live/lanes.ts";
import { type RateKind, rateKinds, rateSeconds, ratesOf, rateVersion } from "../live/rates.ts";
import { isLoading, lanes, lanesSize, lanesVersion, overview, problem, visible } from "../live/store.ts";
import { Screen, Search, Sparkline } from "../ui/bits.tsx";
import { hrefOf, place, setQuery } from "../ui/router.ts";
import { VirtualList } from "../ui/virtual-list.tsx";
import { activityOrder, activityWords, count } from "../ui/words.ts";
import { LaneRow, laneHeight } from "./lane-row.tsx";

/** Lanes keep their places for this long, so that they can be read while the fleet works. */
const sortMs = 1_000;

export function NowScreen() {
  const { activity, q } = Object.fromEntries(place.value.query) as { activity?: Activity; q?: string };
  const shown = useSorted(activity ?? null, (q ?? "").toLowerCase());
  return (
    <Screen title="Now" aside={<Verdict />} tools={<Search label="Agent or label" />}>
      <section class="glance" aria-label="The fleet at a glance">
        <States />
        <Rates />
        <Figures />
      </section>
      <VirtualList
        items={shown}
        rowHeight={laneHeight}
        keyOf={(lane) => lane.id}
        label="Agents"
        onView={(items) => {
          visible.clear();
          for (const { id } of items) visible.add(id);
        }}
        row={(lane) => <LaneRow lane={lane} />}
        empty={<Nothing isFiltered={activity !== undefined || (q ?? "") !== ""} />}
      />
    </Screen>
  );
}

function Nothing({ isFiltered }: { readonly isFiltered: boolean }) {
  if (problem.value !== null) return <p class="error">{problem.value}</p>;
  if (isLoading.value) return <p>Reading agents…</p>;
  if (isFiltered) return <p>No agent matches. Choose the state again to see all.</p>;
  return (
    <>
      <h2>No agent has registered yet</h2>
      <dl class="next">
        <dt>
          <code>leasehold demo</code>
        </dt>
        <dd>shows a scripted fleet here</dd>
        <dt>
          <code>leasehold init</code>
        </dt>
        <dd>sets a coding agent up in this folder</dd>
        <dt>
          <code>leasehold run FILE:/a.txt -- make</code>
        </dt>
        <dd>runs a command under a lease</dd>
      </dl>
    </>
  );
}

type Counts = Readonly<Record<Activity, number>>;

function useCounts(): Counts {
  lanesVersion.value;
  const counts: Record<Activity, number> = { lost: 0, waiting_for_person: 0, blocked: 0, working: 0, idle: 0 };
  for (const { activity } of lanes.values()) counts[activity]++;
  return counts;
}

/** Five counts that filter the lanes, over their shares of the fleet. */
function States() {
  const counts = useCounts();
  const chosen = place.value.query.get("activity") ?? "";
  return (
    <div class="states">
      <fieldset class="tiles" aria-label="What agents do">
        {activityOrder.map((value) => (
          <button
            key={value}
            type="button"
            class={`tile ${value} ${counts[value] === 0 ? "none" : ""}`}
            aria-pressed={chosen === value}
            onClick={() => setQuery("activity", chosen === value ? "" : value)}
          >
            <b>{count(counts[value])}</b>
            <span>{activityWords[value]}</span>
          </button>
        ))}
      </fieldset>
      <div class="shares" aria-hidden="true">
        {activityOrder.map((value) => (
          <span key={value} class={value} style={{ flexGrow: counts[value] }} />
        ))}
      </div>
    </div>
  );
}

/** One sentence: does it flow, and if not, who is needed. */
function Verdict() {
  const { lost, waiting_for_person: asking, blocked, working } = useCounts();
  const figures = overview.value;
  const needs = lost + asking + (figures?.obligations["OVERDUE"] ?? 0) + (figures?.resources["FENCED"] ?? 0);
  const tone = lost > 0 ? "lost" : needs > 0 ? "waiting_for_person" : blocked > working ? "blocked" : "working";
  const sentence =
    lanes.size === 0
      ? "Nothing runs."
      : needs > 0
        ? `${count(needs)} ${needs === 1 ? "thing needs" : "things need"} somebody.`
        : blocked > working
          ? "More agents wait than work."
          : blocked + working === 0
            ? "All agents are idle."
            : "The fleet flows.";
  return (
    <p class={`verdict ${lanes.size === 0 ? "idle" : tone}`}>
      <span class="dot" aria-hidden="true" /> {sentence}
    </p>
  );
}

/** Beside agents: what is held and queued, and what needs somebody. */
function Figures() {
  const figures = overview.value;
  if (figures === null) return null;
  const { tasks, workers, obligations, resources, cells } = figures;
  const rows: readonly (readonly [amount: number, words: string, href: string, tone?: string])[] = [
    [figures.leases, "leases", hrefOf(["resources"])],
    [tasks.queued + tasks.retry_pending, "tasks queued", hrefOf(["tasks"], { status: "queued" })],
    [tasks.leased + tasks.accepted, "at work", hrefOf(["tasks"], { status: "accepted" })],
    [workers.working + workers.idle, "workers", hrefOf(["tasks"])],
    [tasks.dead, "dead letters", hrefOf(["tasks"], { status: "dead" }), "lost"],
    [obligations.OVERDUE, "overdue", hrefOf(["inbox"], { state: "OVERDUE" }), "lost"],
    [resources.FENCED, "fenced", hrefOf(["resources"], { state: "FENCED" }), "lost"],
    [cells.GONE, "cells gone", hrefOf(["resources"]), "lost"],
  ];
  return (
    <p class="figures">
      {rows
        .filter(([amount, , , tone]) => tone === undefined || amount > 0)
        .map(([amount, words, href, tone]) => (
          <a key={words} href={href} class={tone ?? ""}>
            <b>{count(amount)}</b> {words}
          </a>
        ))}
    </p>
  );
}

function Rates() {
  rateVersion.value;
  return (
    <div class="rates">
      {(Object.keys(rateKinds) as RateKind[]).map((kind) => {
        const values = ratesOf(kind).slice(0, -1);
        const lately = values.slice(-5).reduce((sum, value) => sum + value, 0) / 5;
        return (
          <div key={kind} class={`rate ${kind}`}>
            <span class="rate-name">{rateKinds[kind]}</span>
            <span class="rate-value">
              {lately === 0 ? "0" : lately < 10 ? lately.toFixed(1) : count(Math.round(lately))}/s
            </span>
            <Sparkline values={values} label={`${rateKinds[kind]} in the last ${rateSeconds} seconds`} />
          </div>
        );
      })}
    </div>
  );
}

const sortClock = signal(0);
setInterval(() => sortClock.value++, sortMs);

function useSorted(activity: Activity | null, search: string): readonly Lane[] {
  const turn = sortClock.value;
  const size = lanesSize.value;
  // A turn of the clock stands for what changed since the last.
  return useMemo(() => {
    const rank = Object.fromEntries(activityOrder.map((one, at) => [one, at])) as Record<Activity, number>;
    return [...lanes.values()]
      .filter((lane) => (activity === null || lane.activity === activity) && (search === "" || matches(lane, search)))
      .sort((a, b) => rank[a.activity] - rank[b.activity] || (a.id < b.id ? -1 : 1));
  }, [turn, size, activity, search]);
}

function matches({ id, labels }: Lane, search: string): boolean {
  return `${id} ${Object.entries(labels).flat().join(" ")}`.toLowerCase().includes(search);
}
