/** A fleet that edits: each agent has its list, and crashes where it is told to; with the guards, or without. */
import { setTimeout as pause } from "node:timers/promises";
import { type Edit, edited, fileNames, idealMs, lostEdits, type Scale } from "./edits.ts";
import { makePlace, type Place } from "./repository.ts";
import { openSession, type Session } from "./session.ts";

export type Way = "no guards" | "guards" | "guards, claiming first";

export interface FleetResult {
  readonly way: Way;
  readonly edits: number;
  readonly lost: number;
  readonly denials: number;
  readonly rereads: number;
  readonly crashes: number;
  /** The server was too late, and so the answer was no. */
  readonly unanswered: number;
  readonly ms: number;
  readonly idealMs: number;
  /** Agents that had not come to their end when the time was up. */
  readonly stuck: number;
}

/** Longer than an agent thinks; a crashed one's leases are free after it. */
const ttlMs = 12_000;
/** How long a hook stands in line before it says no. */
const waitMs = 1_000;
const restartMs = 300;
const retryMs = 1_000;

interface Counts {
  denials: number;
  rereads: number;
  crashes: number;
  unanswered: number;
}

export async function runFleet(way: Way, scale: Scale, edits: readonly Edit[], limitMs: number): Promise<FleetResult> {
  const place = await makePlace(fileNames(scale), { ttl_ms: ttlMs, wait_ms: way === "guards" ? waitMs : 0 });
  try {
    const counts: Counts = { denials: 0, rereads: 0, crashes: 0, unanswered: 0 };
    const end = AbortSignal.timeout(limitMs);
    const began = performance.now();
    const agents = Array.from({ length: scale.agents }, (_, agent) => {
      const own = edits.filter((edit) => edit.agent === agent);
      return way === "no guards" ? unguarded(place, own, counts) : guarded(place, own, way, counts, end);
    });
    const done = await Promise.all(agents);
    const ms = performance.now() - began;
    const lost = lostEdits(edits, place.read).length;
    const stuck = done.filter((isDone) => !isDone).length;
    return { way, edits: edits.length, lost, ...counts, ms, idealMs: idealMs(edits), stuck };
  } finally {
    await place.remove();
  }
}

async function unguarded(place: Place, edits: readonly Edit[], counts: Counts): Promise<boolean> {
  for (const { id, file, thinkMs, crash } of edits) {
    if (crash !== null) {
      counts.crashes++;
      await pause(restartMs);
    }
    const text = place.read(file);
    await pause(thinkMs);
    place.write(file, edited(text, id));
  }
  return true;
}

/** One that is denied goes on with other work, and comes back to it: as the guard advises. */
async function guarded(
  place: Place,
  edits: readonly Edit[],
  way: Way,
  counts: Counts,
  end: AbortSignal,
): Promise<boolean> {
  const rest = [...edits];
  let life = 0;
  let session = openSession(place, `agent-${edits[0]?.agent}-${life}`);
  let refusals = 0;
  for (let edit = rest.shift(); edit !== undefined; edit = rest.shift()) {
    if (end.aborted) return false;
    const result = await attempt(place, session, edit, way, counts);
    if (result === "done") {
      refusals = 0;
      continue;
    }
    if (result === "crashed") {
      counts.crashes++;
      await pause(restartMs);
      session = openSession(place, `agent-${edit.agent}-${++life}`);
      // What it had written is there; what it only thought of is not.
      if (edit.crash === "thinking") rest.unshift({ ...edit, crash: null });
      continue;
    }
    counts.denials++;
    rest.push(edit);
    // All that is left was tried: it waits a while.
    if (++refusals >= rest.length) await pause(retryMs);
  }
  await session.endTurn();
  return true;
}

async function attempt(
  place: Place,
  session: Session,
  edit: Edit,
  way: Way,
  counts: Counts,
): Promise<"done" | "denied" | "crashed"> {
  const { id, file, thinkMs, crash } = edit;
  if (way === "guards, claiming first" && (await session.claim(file)).isDenied) return "denied";
  for (;;) {
    const text = await session.read(file);
    await pause(thinkMs);
    if (crash === "thinking") return "crashed";
    const told = await session.mayWrite(file);
    if (told.isDenied) {
      if (told.why === "unanswered") counts.unanswered++;
      if (told.why !== "stale") return "denied";
      counts.rereads++;
      continue;
    }
    if (crash === "written") {
      place.write(file, edited(text, id));
      return "crashed";
    }
    await session.wrote(file, edited(text, id));
    await session.endTurn();
    return "done";
  }
}
