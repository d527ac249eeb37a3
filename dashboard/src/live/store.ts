/**
 * The live state of the page: agents, recent events and the figures of now. Plain maps, because there are tens of
 * thousands of records; what shows them is redrawn when a version changes, which is once a frame at most.
 */
import { batch, signal } from "@preact/signals";
import type { Agent, Lease, OpenRequest, OperationAnswers } from "../../../src/sdk/wire.ts";
import { call, wordsOf } from "../api/client.ts";
import { serverNow, session, tenant } from "../api/session.ts";
import { type Ask, changed, type Lane, laneOf, putLease, settle } from "./lanes.ts";
import { isPaused } from "./pausing.ts";
import { clearRates, countEvent, tickRates } from "./rates.ts";
import { EventFeed, type LiveEvent, link } from "./stream.ts";

export type Overview = OperationAnswers["get_overview"];

export const lanes = new Map<string, Lane>();
/** For what counts lanes: a few times a second. A lane has a version of its own. */
export const lanesVersion = signal(0);
export const lanesSize = signal(0);
export const overview = signal<Overview | null>(null);
export const isLoading = signal(true);
/** Why there is nothing to see. */
export const problem = signal<string | null>(null);
/** The newest last. */
export const recent: LiveEvent[] = [];
export const recentVersion = signal(0);
/** For screens that read lists of their own: which kinds of things have changed. */
export const changes = {
  agents: signal(0),
  leases: signal(0),
  waits: signal(0),
  tasks: signal(0),
  resources: signal(0),
  audit: signal(0),
};
/** For what has no events: read again from time to time. */
export const clock = signal(0);

const recentMax = 5_000;
/** Events from before the page was opened. */
const shownBefore = 500;
const pageSize = 1_000;
const overviewMs = 2_000;
const clockMs = 2_000;
/** Counts and the list of events are drawn again this often. */
const countMs = 200;
/** Agents that are read again at once, and how often. */
const refreshMs = 300;
const refreshMax = 6;

let feed: EventFeed | null = null;
let pending: LiveEvent[] = [];
let isScheduled = false;
let snapshotSeq = 0;
let isHistoryShort = false;
let isCountStale = false;
const listeners = new Set<(event: LiveEvent) => void>();
const timers: number[] = [];
/** Agents that are on the screen: those are kept exact. */
export const visible = new Set<string>();

export function onEvent(listener: (event: LiveEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Reads the lists, then follows. Again after a change of tenant, or where history was pruned. */
export async function begin(): Promise<void> {
  end();
  isLoading.value = true;
  try {
    const { sequence } = await readOverview();
    snapshotSeq = sequence;
    // What happened just before is shown among the events, and is in the lists already.
    const since = isHistoryShort ? sequence : Math.max(0, sequence - shownBefore);
    feed = new EventFeed(since, { take, lost: beginLater });
    if (!isPaused.peek()) feed.start();
    lanes.clear();
    let cursor: string | null = null;
    do {
      const answer: OperationAnswers["list_activity"] = await call("list_activity", { limit: pageSize, cursor });
      for (const agent of answer.agents) if (!lanes.has(agent.agent_id)) lanes.set(agent.agent_id, laneOf(agent));
      cursor = answer.next_cursor;
      isLoading.value = false;
      lanesSize.value = lanes.size;
      lanesVersion.value++;
    } while (cursor !== null);
    problem.value = null;
  } catch (error) {
    problem.value = wordsOf(error);
    isLoading.value = false;
    if (session.peek()?.signed_in === true) timers.push(window.setTimeout(() => void begin(), 2_000));
    link.value = "broken";
  }
  timers.push(window.setInterval(() => void (isIdle() || readOverview().catch(() => undefined)), overviewMs));
  timers.push(window.setInterval(() => isPaused.peek() || clock.value++, clockMs));
  timers.push(window.setInterval(tickRates, 1_000));
  timers.push(window.setInterval(countAgain, countMs));
  timers.push(window.setInterval(refreshStale, refreshMs));
}

function countAgain(): void {
  if (!isCountStale) return;
  isCountStale = false;
  batch(() => {
    lanesVersion.value++;
    recentVersion.value++;
  });
}

/** What should be there was pruned: begin with the present. */
function beginLater(): void {
  isHistoryShort = true;
  void begin();
}

export function end(): void {
  feed?.stop();
  feed = null;
  recent.length = 0;
  clearRates();
  for (const timer of timers.splice(0)) clearTimeout(timer);
  pending = [];
}

export function pause(isOn: boolean): void {
  isPaused.value = isOn;
  if (isOn) {
    feed?.stop();
    link.value = "paused";
  } else feed?.start();
}

function isIdle(): boolean {
  return document.hidden || isPaused.peek();
}

async function readOverview(): Promise<Overview> {
  const read = await call("get_overview", {});
  overview.value = read;
  return read;
}

/** A portion is applied with the next frame, whatever number of them arrive before it. */
function take(events: readonly LiveEvent[]): void {
  for (const event of events) pending.push(event);
  if (isScheduled) return;
  isScheduled = true;
  // A hidden tab draws no frames, and must not gather events for ever.
  if (document.hidden) setTimeout(applyPending, 1_000);
  else requestAnimationFrame(applyPending);
}

function applyPending(): void {
  isScheduled = false;
  const events = pending;
  pending = [];
  const touched = new Set<keyof typeof changes>();
  const now = serverNow();
  for (const event of events) {
    countEvent(event.type, now - Date.parse(event.at));
    if (event.seq > snapshotSeq) apply(event, touched);
    recent.push(event);
    for (const listener of listeners) listener(event);
  }
  if (recent.length > recentMax * 1.2) recent.splice(0, recent.length - recentMax);
  batch(() => {
    for (const lane of changed) lane.version.value++;
    lanesSize.value = lanes.size;
    for (const kind of touched) changes[kind].value++;
  });
  changed.clear();
  isCountStale = true;
}

function apply(event: LiveEvent, touched: Set<keyof typeof changes>): void {
  const at = Date.parse(event.at);
  const [noun] = event.type.split(".", 1);
  switch (noun) {
    case "lease": {
      touched.add("leases").add("waits").add("agents");
      const lease = event["lease"] as Lease;
      if (event.type === "lease.transferred") for (const lane of lanes.values()) lane.bars.delete(lease.id);
      const lane = lanes.get(lease.agent_id);
      if (lane === undefined) return;
      putLease(lane, lease);
      settle(lane, at);
      return;
    }
    case "request": {
      touched.add("waits").add("agents");
      const request = event["request"] as (OpenRequest & { readonly state: string }) | undefined;
      const lane = lanes.get(request?.agent_id ?? String(event["agent_id"]));
      if (lane === undefined) return;
      if (event.type === "request.waiting" || event.type === "request.standing_by") {
        if (request !== undefined) lane.asks.set(request.request_id, askOf(request, at));
      } else lane.asks.delete(request?.request_id ?? String(event["request_id"]));
      lane.waits = [];
      settle(lane, at);
      if (event.type === "request.died" || event.type === "request.paused") lane.isStale = true;
      return;
    }
    case "agent":
      touched.add("agents");
      return applyAgent(event, at);
    case "task":
    case "receipt":
      touched.add("tasks").add("waits");
      return;
    case "resource":
    case "cell":
      touched.add("resources");
      return;
    case "audit":
      touched.add("audit");
  }
}

function applyAgent(event: LiveEvent, at: number): void {
  const agent = event["agent"] as Agent | undefined;
  const id = agent?.agent_id ?? String(event["agent_id"]);
  if (event.type === "agent.forgotten") return void lanes.delete(id);
  const lane = lanes.get(id) ?? newLane(id, at);
  if (agent !== undefined) {
    lane.labels = agent.labels;
    lane.state = agent.state;
    lane.isPausedByOperator = agent.paused_by_operator;
  } else lane.state = String(event["to"]);
  settle(lane, at);
}

function newLane(id: string, at: number): Lane {
  const lane: Lane = {
    ...{ id, labels: {}, state: "PLANNING", activity: "idle", since: at, pausedFor: null, retryAt: null },
    ...{ isPausedByOperator: false, bars: new Map(), hidden: 0, asks: new Map() },
    ...{ waits: [], isStale: false, readAt: Date.now() },
    version: signal(0),
  };
  lanes.set(id, lane);
  return lane;
}

function askOf(request: OpenRequest, at: number): Ask {
  const { request_id: id, state, intents, wait_timeout_ms } = request;
  return { id, state, intents, since: at, endsAt: at + wait_timeout_ms };
}

/** Heartbeats make no events: a bar that has nearly run out is read again, while it can be seen. */
const nearEnd = 0.35;
/** Who is in the way of a blocked agent changes with leases of others: read again this often while it is in view. */
const blockedMs = 3_000;
let isRefreshing = false;

function refreshStale(): void {
  if (isRefreshing || isIdle()) return;
  const now = Date.now();
  const wanted = [...visible]
    .map((id) => lanes.get(id))
    .filter((lane): lane is Lane => lane !== undefined && needsReading(lane, now))
    .slice(0, refreshMax);
  if (wanted.length === 0) return;
  isRefreshing = true;
  Promise.all(wanted.map(({ id }) => refreshLane(id))).finally(() => {
    isRefreshing = false;
    isCountStale = true;
  });
}

function needsReading(lane: Lane, now: number): boolean {
  if (lane.isStale) return now - lane.readAt > refreshMs;
  if (lane.activity === "blocked" && lane.waits.length === 0) return now - lane.readAt > refreshMs;
  if (now - lane.readAt < 2_000) return false;
  if (lane.activity === "blocked") return now - lane.readAt > blockedMs;
  for (const { endsAt, ttl } of lane.bars.values()) if (endsAt - now < ttl * nearEnd) return true;
  return lane.retryAt !== null && now - lane.readAt > 5_000;
}

export async function refreshLane(id: string): Promise<void> {
  try {
    const { agents } = await call("list_activity", { agent_id: id });
    const [agent] = agents;
    const waits = agent?.activity === "blocked" ? (await call("list_waits", { agent_id: id, limit: 4 })).waits : [];
    const known = lanes.get(id);
    if (agent === undefined) lanes.delete(id);
    else if (known === undefined) lanes.set(id, laneOf(agent));
    else {
      // The row on the screen keeps its lane.
      const { bars, asks, version: _, ...rest } = laneOf(agent);
      Object.assign(known, rest, { waits });
      replace(known.bars, bars);
      replace(known.asks, asks);
      known.version.value++;
    }
  } catch {
    const lane = lanes.get(id);
    if (lane !== undefined) lane.readAt = Date.now();
  }
}

function replace<T>(kept: Map<string, T>, fresh: ReadonlyMap<string, T>): void {
  kept.clear();
  for (const [id, value] of fresh) kept.set(id, value);
}

export function lastSeq(): number {
  return feed?.lastSeq ?? 0;
}

export function chooseTenant(id: string | null): void {
  tenant.value = id;
  void begin();
}
