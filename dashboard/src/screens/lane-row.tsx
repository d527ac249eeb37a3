/** An agent as a lane: who it is, what it does, what it waits for and behind whom, and what it holds as bars. */
import { Component } from "preact";
import type { Ask, Bar, Lane } from "../live/lanes.ts";
import { AgentLink, ResourceName } from "../ui/bits.tsx";
import { hrefOf } from "../ui/router.ts";
import { BriefLeft, ShrinkingFill, Since, Ticking } from "../ui/ticking.tsx";
import { activityWords, brief, count, duration, middle, pauseWords } from "../ui/words.ts";

export const laneHeight = 48;
const barsMax = 5;

/** Drawn again when its lane changes, and not when the list around it is. */
export class LaneRow extends Component<{ readonly lane: Lane }> {
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
          <AskBar key={ask.id} ask={ask} lane={lane} />
        ))}
        {bars.slice(0, barsMax).map((bar) => (
          <LeaseBar key={bar.id} bar={bar} />
        ))}
        {more > 0 ? (
          <a class="more" href={hrefOf(["agents", lane.id])}>
            +{count(more)}
          </a>
        ) : null}
        {bars.length + lane.asks.size === 0 ? <WhyNothing lane={lane} /> : null}
      </div>
    </div>
  );
}

/** Of an agent that neither holds nor asks. */
function WhyNothing({ lane }: { readonly lane: Lane }) {
  const { retryAt } = lane;
  const [wait] = lane.waits;
  const [blocker] = wait?.blocked_by ?? [];
  if (lane.isPausedByOperator) return <span class="quiet">paused by an operator; unpause it to go on</span>;
  if (lane.activity === "blocked" && (lane.pausedFor === "die" || retryAt !== null))
    return (
      <a class="ask" href={hrefOf(["waits"], { agent: lane.id })} title="Who is in its way">
        gave way{blocker === undefined ? "" : ` to ${middle(blocker.agent_id, 24)} on ${middle(blocker.resource, 28)}`},{" "}
        <Ticking
          words={(now) =>
            retryAt === null || retryAt <= now ? "asks again soon" : `asks again in ${duration(retryAt - now)}`
          }
        />
      </a>
    );
  if (lane.state === "DIE_RESTART") return <span class="quiet">restarting; what it held is kept for a short time</span>;
  const why = lane.pausedFor === null ? lane.state.toLowerCase() : (pauseWords[lane.pausedFor] ?? lane.pausedFor);
  return <span class="quiet">{why}</span>;
}

function LeaseBar({ bar }: { readonly bar: Bar }) {
  const words = `${bar.predicate} ${bar.resource}, until ${new Date(bar.endsAt).toLocaleTimeString()}${bar.purpose === null ? "" : `: ${bar.purpose}`}`;
  return (
    <span class={`bar ${bar.state}`} title={words}>
      <ShrinkingFill endsAt={bar.endsAt} ttl={bar.ttl} />
      <span class="bar-words">
        <ResourceName name={bar.resource} max={26} />
        <span class="bar-left">{bar.state === "ACTIVE" ? null : `${bar.state.toLowerCase()} `}</span>
        <span class="bar-left">
          <BriefLeft until={bar.endsAt} />
        </span>
      </span>
    </span>
  );
}

/** What it wants, behind whom, since when and for how long still. */
function AskBar({ ask, lane }: { readonly ask: Ask; readonly lane: Lane }) {
  const [first] = ask.intents;
  const wait = lane.waits.find(({ request_id }) => request_id === ask.id);
  const [blocker] = wait?.blocked_by ?? [];
  const others = (wait?.blocked_by_total ?? 0) - 1;
  return (
    <a class="ask" href={hrefOf(["waits"], { agent: lane.id })} title="Who is in its way">
      {ask.state === "STANDBY" ? "stands by for " : "waits for "}
      <b>{first === undefined ? "" : middle(first.resource, 30)}</b>
      {ask.intents.length > 1 ? ` +${ask.intents.length - 1}` : ""}
      {blocker === undefined ? "" : ` behind ${middle(blocker.agent_id, 24)}`}
      {others > 0 ? ` +${others}` : ""} ·{" "}
      <Ticking words={(now) => (ask.endsAt > now ? `gives up in ${brief(ask.endsAt - now)}` : "about to give up")} />
    </a>
  );
}
