/**
 * Acquires leases as a session's agent, renews them with every hook, and releases them with their versions.
 *
 * A hook lives for milliseconds and sends one heartbeat at most, so there is nothing here for the SDK's keeper
 * (keeper/lease-keeper.ts) to schedule or to stop, and loading it would only make the hook slower.
 */
import { join } from "node:path";
import type { Blocker, Lease, ObservationUpdate } from "../sdk/wire.ts";
import type { Answer, ControlPlane } from "./control-plane.ts";
import { hintLeftMs, rememberHint } from "./hints.ts";
import type { Intent } from "./intents.ts";
import { ownNames } from "./own-leases.ts";
import { readPrivate, remove, writePrivate } from "./private-files.ts";
import { callAs, isRegistered, type Session } from "./session.ts";
import type { Settings } from "./settings.ts";
import { covers } from "./targets.ts";
import { wroteFolder, wroteVersions } from "./versions.ts";

export type Verdict =
  | { readonly kind: "granted"; readonly changes: readonly Change[] }
  | {
      readonly kind: "blocked";
      readonly isDead: boolean;
      readonly blockers: readonly Blocker[];
      readonly total: number;
      /** After DIE: when to ask again (W5); null where nothing was said. */
      readonly retryAfterMs: number | null;
    }
  /** It got DIE, and the time to ask again has not come; the server was not asked. */
  | { readonly kind: "early"; readonly leftMs: number }
  | { readonly kind: "refused"; readonly detail: string };

/** A4: what another agent did to it while this one could not see it. */
export type Change = ObservationUpdate["changes"][number];

export interface Asking {
  readonly settings: Settings;
  readonly server: ControlPlane;
  readonly session: Session;
}

const holdingFile = "holding";
/** A hint that is over sooner is waited for by the hook itself. */
const hintWaitMsMax = 1_000;
/** What keeps everybody else out. */
const writing: ReadonlySet<string> = new Set(["MUTATES", "DELETES", "RENAMES"]);

/** What it holds is renewed first, which also tells what need not be asked for again. */
export async function lease(
  asking: Asking,
  wanted: readonly Intent[],
  purpose: string,
  waitMs = asking.settings.waitMs,
): Promise<Verdict> {
  const { session } = asking;
  const held = await renew(asking);
  const isHeld = (name: string) => held.some((own) => writing.has(own.predicate) && covers(own.resource, name));
  const intents = wanted.filter(({ resource, to }) => !(isHeld(resource) && (to === undefined || isHeld(to))));
  if (intents.length === 0) return { kind: "granted", changes: [] };
  const verdict = await acquire(asking, intents, purpose, waitMs);
  if (verdict.kind !== "blocked") return verdict;
  // What its own model holds by another way is not in its way; the rest is asked for without it.
  const names = ownNames(session);
  const own = verdict.blockers.filter(({ lease_id: id = "" }) => names.includes(id));
  const rest = intents.filter(({ resource }) => !own.some((one) => covers(one.resource, resource)));
  if (own.length === 0 || rest.length === intents.length) {
    rememberHint(session, namesOf(intents), verdict.retryAfterMs);
    return verdict;
  }
  return rest.length === 0 ? { kind: "granted", changes: [] } : await lease(asking, rest, purpose, waitMs);
}

function namesOf(intents: readonly Intent[]): readonly string[] {
  return intents.flatMap(({ resource, to }) => (to === undefined ? [resource] : [resource, to]));
}

async function acquire(asking: Asking, intents: readonly Intent[], purpose: string, waitMs: number): Promise<Verdict> {
  const { settings, session } = asking;
  const leftMs = hintLeftMs(session, namesOf(intents));
  if (leftMs > hintWaitMsMax) return { kind: "early", leftMs };
  if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs));
  const claim = { agent_id: session.agentId, intents, wait_timeout_ms: waitMs };
  const terms = { ttl_ms: settings.ttlMs, hold_ms: waitMs, standby_ms: waitMs, purpose };
  noteHolding(session);
  const { status, body } = await callAs(asking, "POST", "/v1/acquire", { ...claim, ...terms }, waitMs);
  if (status === 200) {
    // Once more: another hook of this agent may have released all, and said so, in between.
    noteHolding(session);
    const { observation_update: update } = body as { readonly observation_update?: ObservationUpdate };
    return { kind: "granted", changes: update?.changes ?? [] };
  }
  const { error, detail, request_id: request } = body;
  if (status === 202 && typeof request === "string") {
    // It would go on waiting in line without anybody who collects it.
    await callAs(asking, "DELETE", `/v1/requests/${encodeURIComponent(request)}`);
  }
  const blocked = blockedBy(body, error === "die");
  if (blocked !== null) return blocked;
  if (error !== "wait_timeout") {
    return { kind: "refused", detail: String(detail ?? error ?? `the server answers ${status}`) };
  }
  // The end of a wait does not say who was in the way; a dry run does.
  const dry = await callAs(asking, "POST", "/v1/acquire", { ...claim, wait_timeout_ms: 0, dry_run: true });
  return blockedBy(dry.body, false) ?? { kind: "refused", detail: "it was held until just now; try again" };
}

function blockedBy(body: Answer["body"], isDead: boolean): Verdict | null {
  const { blocked_by: by, blocked_by_total: total, retry_after_ms: hint } = body;
  if (!Array.isArray(by) || by.length === 0) return null;
  const blockers = by as readonly Blocker[];
  const retryAfterMs = isDead && typeof hint === "number" ? hint : null;
  return { kind: "blocked", isDead, blockers, total: typeof total === "number" ? total : by.length, retryAfterMs };
}

/** Written before anything is asked for, so that it is there whenever the agent may hold something. */
export function noteHolding({ agentFolder }: Session): void {
  writePrivate(join(agentFolder, holdingFile), "");
}

/** False only if it holds nothing for certain: then most hooks need no server. */
function mayHold(session: Session): boolean {
  return readPrivate(join(session.agentFolder, holdingFile)) !== null && isRegistered(session);
}

/** All that it holds, for another TTL. */
export async function renew(asking: Asking): Promise<readonly Lease[]> {
  if (!mayHold(asking.session)) return [];
  const { status, body } = await callAs(asking, "POST", "/v1/heartbeat", { agent_id: asking.session.agentId });
  const { leases } = body as { readonly leases?: readonly Lease[] };
  return status === 200 && Array.isArray(leases) ? leases : [];
}

/** L10: files of these leases were changed. To read a file, or to hold it, is not activity. */
export async function reportActivity(asking: Asking, leases: readonly Lease[]): Promise<void> {
  if (leases.length === 0) return;
  const ids = [...new Set(leases.map(({ id }) => id))];
  const heartbeat = { agent_id: asking.session.agentId, lease_ids: ids, activity: true };
  await callAs(asking, "POST", "/v1/heartbeat", heartbeat);
}

/** Resources of leases. */
export interface Released {
  readonly given: readonly string[];
  readonly kept: readonly string[];
}

export const nothingReleased: Released = { given: [], kept: [] };

export async function releaseAll(asking: Asking): Promise<Released> {
  const { session } = asking;
  if (!mayHold(session)) return nothingReleased;
  const given = await release(asking, null);
  remove(join(session.agentFolder, wroteFolder));
  if (given !== null) remove(join(session.agentFolder, holdingFile));
  return { given: given ?? [], kept: [] };
}

/** W5: after DIE. A file with edits of its own that are not committed is half done, and nobody else's to go on with. */
export async function releaseUnedited(asking: Asking, edited: readonly string[]): Promise<Released> {
  const held = await renew(asking);
  const isEdited = ({ resource }: Lease) => edited.some((name) => covers(resource, name));
  const kept = held.filter(isEdited).map(({ resource }) => resource);
  if (kept.length === 0) return await releaseAll(asking);
  const free = held.filter((one) => !isEdited(one));
  const given = free.length === 0 ? [] : await release(asking, free);
  return { given: given ?? [], kept };
}

/** What was released; null where the server did not do it. */
async function release(asking: Asking, leases: readonly Lease[] | null): Promise<readonly string[] | null> {
  const { session } = asking;
  const named = leases === null ? {} : { lease_ids: leases.map(({ id }) => id) };
  const held = leases ?? (await renew(asking));
  const versions = wroteVersions(session.agentFolder);
  const body = { agent_id: session.agentId, versions, ...named };
  const answer = await callAs(asking, "POST", "/v1/release", body);
  return answer.status === 200 ? held.map(({ resource }) => resource) : null;
}

const unsaidFile = "unsaid";

/** Before a tool runs only a refusal reaches the model, so what else there is to say is kept until it has run. */
export function keepForAfter({ agentFolder }: Session, words: string): void {
  writePrivate(join(agentFolder, unsaidFile), words);
}

/** Once. */
export function takeKept({ agentFolder }: Session): string | null {
  const path = join(agentFolder, unsaidFile);
  const words = readPrivate(path);
  if (words !== null) remove(path);
  return words;
}

/** What others hold in this repository: all but leases of the agents, and the leases, that are named as own. */
export async function heldByOthers(
  server: ControlPlane,
  name: string,
  own: readonly string[],
  pagesMax = 10,
): Promise<readonly Lease[]> {
  const found: Lease[] = [];
  let cursor = "";
  for (let page = 0; page < pagesMax; page++) {
    const query = new URLSearchParams({ resource: `FILE:/${name}/**`, limit: "1000", ...(cursor && { cursor }) });
    const { status, body } = await server.call("GET", `/v1/leases?${query}`);
    const { detail, error, leases = [], next_cursor: next } = body;
    if (status !== 200) throw new Error(String(detail ?? error ?? status));
    found.push(
      ...(leases as readonly Lease[]).filter(({ agent_id: agent, id }) => !own.includes(agent) && !own.includes(id)),
    );
    if (typeof next !== "string") break;
    cursor = next;
  }
  return found;
}
