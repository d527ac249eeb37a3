/** Whether the fleet flows: five counts, what happens how often, and each agent as a lane. */
import { signal } from "@preact/signals";
import { Component } from "preact";
import { useMemo } from "preact/hooks";
import { serverNow } from "../api/session.ts";
import type { Activity, Ask, Bar, Lane } from "../live/lanes.ts";
import { type RateKind, rateKinds, rateSeconds, ratesOf, rateVersion } from "../live/rates.ts";
import { clock, isLoading, lanes, lanesSize, lanesVersion, overview, problem, visible } from "../live/store.ts";
import { AgentLink, Chips, ResourceName, Screen, Search, Since, Sparkline } from "../ui/bits.tsx";
import { hrefOf, place } from "../ui/router.ts";
import { VirtualList } from "../ui/virtual-list.tsx";
import { activityOrder, activityWords, brief, count, duration, middle, pauseWords } from "../ui/words.ts";

/** Lanes keep their places for this long, so that they can be read while the fleet works. */
const sortMs = 1_000;
const laneHeight = 58;
const barsMax = 5;

export function NowScreen() {
  const { activity, q } = Object.fromEntries(place.value.query) as { activity?: Activity; q?: string };
  const shown = useSorted(activity ?? null, (q ?? "").toLowerCase());
  return (
    <Screen title="Now" tools={<Search label="Agent or label" />}>
      <Verdict />
      <div class="strip">
        <ActivityChips />
        <Rates />
      </div>
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
  if (isFiltered) return <p>No agent matches.</p>;
  return (
    <>
      <p>No agent has registered yet.</p>
      <p>
        <code>leasehold init</code> sets a coding agent up; <code>leasehold run FILE:/a.txt -- make</code> runs a
        command under a lease; <code>leasehold demo</code> shows a fleet.
      </p>
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

function ActivityChips() {
  const counts = useCounts();
  const chips = activityOrder.map((value) => ({
    value,
    label: activityWords[value],
    count: counts[value],
    tone: value,
  }));
  return <Chips name="activity" label="What agents do" chips={chips} />;
}

/** One sentence: does it flow, and if not, who is needed. */
function Verdict() {
  const counts = useCounts();
  const { lost, waiting_for_person: asking, blocked, working } = counts;
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
    <p class={`verdict ${tone}`}>
      <strong>{sentence}</strong>
      {figures === null ? null : (
        <span>
          {count(figures.leases)} leases · {count(figures.tasks["queued"] ?? 0)} tasks queued ·{" "}
          {count((figures.tasks["leased"] ?? 0) + (figures.tasks["accepted"] ?? 0))} at work
          <Needed
            amount={figures.tasks["dead"] ?? 0}
            words="dead letters"
            href={hrefOf(["tasks"], { status: "dead" })}
          />
          <Needed
            amount={figures.obligations["OVERDUE"] ?? 0}
            words="overdue"
            href={hrefOf(["inbox"], { state: "OVERDUE" })}
          />
          <Needed
            amount={figures.resources["FENCED"] ?? 0}
            words="fenced"
            href={hrefOf(["resources"], { state: "FENCED" })}
          />
        </span>
      )}
    </p>
  );
}

function Needed({ amount, words, href }: { readonly amount: number; readonly words: string; readonly href: string }) {
  if (amount === 0) return null;
  return (
    <>
      {" · "}
      <a href={href}>
        {count(amount)} {words}
      </a>
    </>
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
              {lately === 0 ? "0" : lately < 10 ? lately.toFixed(1) : Math.round(lately)}/s
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: a turn of the clock stands for what changed since the last.
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

/** Drawn again when its lane changes, and not when the list around it is. */
class LaneRow extends Component<{ readonly lane: Lane }> {
  override shouldComponentUpdate({ lane }: { readonly lane: Lane }): boolean {
    return lane !== this.props.lane;
  }

  override render() {
    return <LaneContent lane={this.props.lane} />;
  }
}

function LaneContent({ lane }: { readonly lane: Lane }) {
  lane.version.value;
  const bars = [...lane.bars.values()];
  const more = bars.length - barsMax + lane.hidden;
  return (
    <div class={`lane ${lane.activity}`}>
      <span class="dot" aria-hidden="true" />
      <div class="lane-who">
        <AgentLink id={lane.id} />
        <span class="lane-state">
          {activityWords[lane.activity]} · <Since at={lane.since} />
        </span>
      </div>
      <div class="lane-what">
        {[...lane.asks.values()].slice(0, 2).map((ask) => (
          <AskBar key={ask.id} ask={ask} agent={lane.id} />
        ))}
        {bars.slice(0, barsMax).map((bar) => (
          <LeaseBar key={bar.id} bar={bar} />
        ))}
        {more > 0 ? <a href={hrefOf(["agents", lane.id])}>+{count(more)}</a> : null}
        {bars.length + lane.asks.size === 0 ? <span class="quiet">{whyNothing(lane)}</span> : null}
      </div>
    </div>
  );
}

function whyNothing(lane: Lane): string {
  clock.value;
  if (lane.isPausedByOperator) return "paused by an operator";
  if (lane.retryAt !== null && lane.retryAt > serverNow()) {
    return `${pauseWords["die"]} in ${duration(lane.retryAt - serverNow())}`;
  }
  if (lane.state === "DIE_RESTART") return "restarting; what it held is kept for a short time";
  return lane.pausedFor === null ? lane.state.toLowerCase() : (pauseWords[lane.pausedFor] ?? lane.pausedFor);
}

function LeaseBar({ bar }: { readonly bar: Bar }) {
  clock.value;
  const left = Math.max(0, bar.endsAt - serverNow());
  const share = Math.min(1, left / bar.ttl);
  const words = `${bar.predicate} ${bar.resource}, ${duration(left)} left${bar.purpose === null ? "" : `: ${bar.purpose}`}`;
  return (
    <span class={`bar ${bar.state} ${share < 0.2 ? "short" : ""}`} title={words}>
      <span class="bar-fill" style={{ transform: `scaleX(${share.toFixed(3)})` }} />
      <span class="bar-words">
        <ResourceName name={bar.resource} max={26} />
        <span class="bar-left">{brief(left)}</span>
      </span>
    </span>
  );
}

function AskBar({ ask, agent }: { readonly ask: Ask; readonly agent: string }) {
  clock.value;
  const [first] = ask.intents;
  return (
    <a class="ask" href={hrefOf(["waits"], { agent })} title="Who is in its way">
      {ask.state === "STANDBY" ? "stands by for" : "waits for"} {first === undefined ? "" : middle(first.resource, 28)}
      {ask.intents.length > 1 ? ` +${ask.intents.length - 1}` : ""} · {duration(serverNow() - ask.since)}
    </a>
  );
}
