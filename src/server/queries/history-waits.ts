/** Who waited at a moment and does not any more: the events by which requests end say when each was submitted. */

import { setImmediate } from "node:timers/promises";
import type { Engine } from "../../engine/engine.ts";
import { eventsAfter } from "../../engine/history.ts";
import { firstRequestIdAt, timeOfId } from "../../kernel/contract/ids.ts";
import { type Millis, type Request, request as requestFields } from "../../kernel/contract/records.ts";
import { settingsDefault } from "../../kernel/contract/tenant-records.ts";
import { namesOverlap, parseResourceName, type ResourceName, tenantsIn } from "../../kernel/views.ts";
import type { HistoryWait } from "../../protocol/answers/queries.ts";
import { show } from "../../protocol/schema/convert.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { isoTime } from "../../protocol/schema/text.ts";
import type { EventsAfter, History } from "../../store/store.ts";
import type { Service } from "../service.ts";

/** Events that are read at once, and for one page. */
const portion = 250;
const scannedMax = 20_000;
/** Parsed in one turn of the loop (S8). */
const bytesPerTurn = 256 * 1_024;
/** A wait ends a little after its timeout: a cell may still set it up. */
const graceMs = 60_000;
/** A longer time without events counts as this much: the server may have been down, and waits end when it is back. */
const gapMsMax = 10_000;

export interface HistoryFilter {
  readonly at: Millis;
  readonly resource: ResourceName | null;
  readonly agentId: string | null;
}

interface Sought {
  readonly tenant: string;
  readonly filter: HistoryFilter;
  readonly room: number;
  /** The last event that was looked at, and the time that has passed up to it. */
  readonly position: string | null;
}

export async function findEndedWaits(
  { engine, events }: Service,
  { tenant, filter, room, position }: Sought,
): Promise<{ readonly waits: readonly HistoryWait[]; readonly next: string | null }> {
  const { at } = filter;
  const read = (seq: number): Promise<EventsAfter> =>
    events.readers.turn(tenant, () => eventsAfter(engine, { tenant, seq, limit: portion }));
  const longest = await engine.ask((state) => longestWait(tenantsIn(state).get(tenant)?.record.settings));
  const end = engine.lastSeq;
  let [seq, passed] = readPosition(position) ?? [await lastBefore(read, engine.store, at, end), 0];
  let before: Millis | null = null;
  const waits = new Map<string, HistoryWait>();
  let bytes = 0;
  let inTurn = 0;
  for (let scanned = 0; seq < end; scanned += portion) {
    if (scanned >= scannedMax) return { waits: [...waits.values()], next: `${seq}:${passed}` };
    const { seqs, texts, through } = await read(seq);
    for (const [index, text] of texts.entries()) {
      const time = timeOf(text);
      if (time <= at) continue;
      passed += Math.min(time - (before ?? time), gapMsMax);
      before = time;
      if (passed > longest) return { waits: [...waits.values()], next: null };
      if (isOfRequest(text)) inTurn += text.length;
      if (inTurn > bytesPerTurn) {
        inTurn = 0;
        await setImmediate();
      }
      const wait = endedWait(text, filter);
      // The first of its ends is the end of its wait.
      if (wait === null || waits.has(wait.request_id)) continue;
      waits.set(wait.request_id, wait);
      // Names are shown twice: as intents, and as resources.
      bytes += 2 * text.length;
      if (waits.size === room || bytes > limits.pageBytesMax)
        return { waits: [...waits.values()], next: `${seqs[index]}:${passed}` };
    }
    if (through <= seq) break;
    seq = through;
  }
  return { waits: [...waits.values()], next: null };
}

function readPosition(position: string | null): [seq: number, passed: Millis] | null {
  if (position === null) return null;
  const [, seq = "", passed = ""] = /^(\d{1,15}):(\d{1,15})$/.exec(position) ?? [];
  // A cursor that nobody gave out leads to the end.
  return seq === "" ? [Number.MAX_SAFE_INTEGER, 0] : [Number(seq), Number(passed)];
}

/** The tenant's own maximum may have been greater then. */
function longestWait(settings: { readonly waitTimeoutMsMax: number } | undefined): Millis {
  return Math.max(settings?.waitTimeoutMsMax ?? 0, settingsDefault.waitTimeoutMsMax) + graceMs;
}

/**
 * An event before which all are of that moment or earlier. Where the tenant has none in what is looked at, the search goes
 * on before it: to begin too early is only slower.
 */
async function lastBefore(
  read: (seq: number) => Promise<EventsAfter>,
  store: Pick<History, "earliestSeq">,
  at: Millis,
  end: number,
): Promise<number> {
  let low = (await store.earliestSeq()) - 1;
  let high = end;
  while (high - low > portion) {
    const middle = Math.floor((low + high) / 2);
    const { seqs, texts } = await read(middle);
    const [seq, text] = [seqs[0], texts[0]];
    if (seq !== undefined && text !== undefined && timeOf(text) <= at) low = seq;
    else high = middle;
  }
  return low;
}

/** Whether all events since then are kept. Where that cannot be said, they count as gone. */
export async function eventsReachBackTo(engine: Engine, tenant: string, at: Millis): Promise<boolean> {
  const earliest = await engine.store.earliestSeq();
  if (earliest <= 1) return true;
  const { texts } = await eventsAfter(engine, { tenant, seq: earliest - 1, limit: portion });
  return texts[0] !== undefined && timeOf(texts[0]) <= at;
}

/** Every event begins with its type and time. */
const beginning = /^\{"type":"[^"]*","at":"([^"]*)"/;

function timeOf(text: string): Millis {
  return Date.parse(beginning.exec(text)?.[1] ?? "");
}

const ends = {
  "request.granted": "granted",
  "request.timed_out": "timed_out",
  "request.canceled": "canceled",
  "request.paused": "paused",
  "request.died": "died",
} as const;

/** As the store has it. */
interface EndEvent {
  readonly type: keyof typeof ends;
  readonly at: string;
  readonly request?: Omit<HistoryWait, "resources" | "ended_as" | "ended_at">;
  readonly request_id?: string;
  readonly agent_id?: string;
  readonly resources?: readonly string[];
}

function isOfRequest(text: string): boolean {
  return text.startsWith('{"type":"request.');
}

/** A DIE at once has no request, and nothing waited; of one that stood by, only its id says since when. */
function endedWait(text: string, filter: HistoryFilter): HistoryWait | null {
  if (!isOfRequest(text)) return null;
  const { type, at, request, ...died } = JSON.parse(text) as EndEvent;
  if (ends[type] === undefined) return null;
  const ended = { ended_as: ends[type], ended_at: at };
  if (request !== undefined) {
    const { request_id, agent_id, intents, purpose, submitted_at } = request;
    if (Date.parse(submitted_at) > filter.at) return null;
    const wait = { request_id, agent_id, intents, resources: namesIn(intents), purpose, submitted_at, ...ended };
    return isWanted(agent_id, wait.resources, filter) ? wait : null;
  }
  const { request_id, agent_id = "", resources = [] } = died;
  if (request_id === undefined || request_id >= firstRequestIdAt(filter.at + 1)) return null;
  if (!isWanted(agent_id, resources, filter)) return null;
  const submitted_at = isoTime(timeOfId(request_id));
  return { request_id, agent_id, intents: [], resources, purpose: null, submitted_at, ...ended };
}

/** One that still waits. */
export function waitOf(request: Request): HistoryWait {
  const { request_id, agent_id, intents, purpose, submitted_at } = show(
    requestFields,
    request,
  ) as unknown as HistoryWait;
  const resources = namesIn(request.intents);
  return { request_id, agent_id, intents, resources, purpose, submitted_at, ended_as: null, ended_at: null };
}

export function isAskedFor({ agentId, intents }: Request, filter: HistoryFilter): boolean {
  return isWanted(agentId, namesIn(intents), filter);
}

function isWanted(agentId: string, resources: readonly string[], filter: HistoryFilter): boolean {
  if (filter.agentId !== null && agentId !== filter.agentId) return false;
  const { resource } = filter;
  if (resource === null) return true;
  return resources.some((text) => {
    const name = parseResourceName(text);
    return !("problem" in name) && namesOverlap(resource, name);
  });
}

function namesIn(intents: readonly { readonly resource: string; readonly to?: string | null }[]): readonly string[] {
  return intents.flatMap(({ resource, to }) => (to === undefined || to === null ? [resource] : [resource, to]));
}
