/** A fleet that edits, with or without guards: each agent works through its list and crashes where the list says. */
import { setTimeout as pause } from "node:timers/promises";
import { type Edit, edited, fileNames, idealMs, lostEdits, type Scale } from "./edits.ts";
import { makePlace, type Place } from "./repository.ts";
import { nothingSpent, openSession, type Session, type Spent } from "./session.ts";

export type Way = "no guards" | "guards" | "guards, claiming first" | "guards and MCP";

export interface FleetResult {
  readonly way: Way;
  readonly edits: number;
  readonly lost: number;
  readonly denials: number;
  readonly rereads: number;
  readonly crashes: number;
  /** Denied because the server did not answer in time. */
  readonly unanswered: number;
  readonly ms: number;
  readonly idealMs: number;
  /** Agents that had not finished in time. */
  readonly stuck: number;
  /** Of all agents together. */
  readonly spent: Spent;
}

/** Longer than an agent thinks; a crashed agent's leases end after it. */
const ttlMs = 12_000;
/** How long a hook waits before it denies. */
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
    const spent = nothingSpent();
    const end = AbortSignal.timeout(limitMs);
    const began = performance.now();
    const agents = Array.from({ length: scale.agents }, (_, agent) => {
      const own = edits.filter((edit) => edit.agent === agent);
      return way === "no guards" ? unguarded(place, own, counts) : guarded(place, own, way, counts, spent, end);
    });
    const done = await Promise.all(agents);
    const ms = performance.now() - began;
    const lost = lostEdits(edits, place.read).length;
    const stuck = done.filter((isDone) => !isDone).length;
    return { way, edits: edits.length, lost, ...counts, ms, idealMs: idealMs(edits), stuck, spent };
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

/** A denied agent goes on with other work and retries the file later, as the guard advises. */
async function guarded(
  place: Place,
  edits: readonly Edit[],
  way: Way,
  counts: Counts,
  spent: Spent,
  end: AbortSignal,
): Promise<boolean> {
  const rest = [...edits];
  let life = 0;
  let session = await openSession(place, `agent-${edits[0]?.agent}-${life}`, spent);
  const triedAt = new Map<string, number>();
  const canWait = way === "guards and MCP";
  const nextEdit = () => next(rest, triedAt, canWait, spent);
  for (let edit = await nextEdit(); edit !== null; edit = await nextEdit()) {
    if (end.aborted) return false;
    const wasTried = performance.now() - (triedAt.get(edit.file) ?? -retryMs) < retryMs;
    const result = await attempt(place, session, edit, way, { counts, spent, waits: wasTried });
    if (result === "done") continue;
    if (result === "crashed") {
      counts.crashes++;
      session.crash();
      await pause(restartMs);
      spent.pausing += restartMs;
      session = await openSession(place, `agent-${edit.agent}-${++life}`, spent);
      // What it had written stays; what it had not written is lost.
      if (edit.crash === "thinking") rest.unshift({ ...edit, crash: null });
      continue;
    }
    counts.denials++;
    triedAt.set(edit.file, performance.now());
    rest.push(edit);
  }
  await session.endTurn();
  session.crash();
  return true;
}

/** The first edit whose file was not denied recently, else the one whose denial is oldest, for which it can also wait in line. */
async function next(
  rest: Edit[],
  triedAt: ReadonlyMap<string, number>,
  canWait: boolean,
  spent: Spent,
): Promise<Edit | null> {
  const now = performance.now();
  const leftMs = ({ file }: Edit): number => Math.max(0, (triedAt.get(file) ?? -retryMs) + retryMs - now);
  const best = rest.reduce<Edit | null>(
    (one, other) => (one !== null && leftMs(one) <= leftMs(other) ? one : other),
    null,
  );
  if (best === null) return null;
  const pauseMs = canWait ? 0 : leftMs(best);
  await pause(pauseMs);
  spent.pausing += pauseMs;
  rest.splice(rest.indexOf(best), 1);
  return best;
}

async function attempt(
  place: Place,
  session: Session,
  edit: Edit,
  way: Way,
  { counts, spent, waits }: { readonly counts: Counts; readonly spent: Spent; readonly waits: boolean },
): Promise<"done" | "denied" | "crashed"> {
  const { id, file, thinkMs, crash } = edit;
  if (way === "guards, claiming first" && (await session.claim(file)).isDenied) return "denied";
  if (way === "guards and MCP" && (await session.acquire(file, waits)).isDenied) return "denied";
  for (;;) {
    const text = await session.read(file);
    await pause(thinkMs);
    spent.thinking += thinkMs;
    if (crash === "thinking") return "crashed";
    const decision = await session.mayWrite(file);
    if (decision.isDenied) {
      if (decision.why === "unanswered") counts.unanswered++;
      if (decision.why !== "stale") return "denied";
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
