/**
 * Acquires leases as a session's agent, renews them with every hook, and releases them with their versions.
 *
 * A hook lives for milliseconds and sends one heartbeat at most, so there is nothing here for the SDK's keeper
 * (sdk/lease-keeper.ts) to schedule or to stop, and loading it would only make the hook slower.
 */
import { join } from "node:path";
import type { Blocker, Lease } from "../sdk/wire.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { Intent } from "./intents.ts";
import { covers } from "./name-match.ts";
import { nodeModule } from "./node-module.ts";
import { fileName } from "./places.ts";
import { readPrivate, readPrivateJson, remove, writePrivate } from "./private-files.ts";
import { callAs, isRegistered, type Session } from "./session.ts";
import type { Settings } from "./settings.ts";
import { versionOf } from "./versions.ts";

const { readdirSync } = nodeModule("node:fs");

export type Verdict =
  | { readonly kind: "granted" }
  | {
      readonly kind: "blocked";
      readonly isDead: boolean;
      readonly blockers: readonly Blocker[];
      readonly total: number;
    }
  | { readonly kind: "refused"; readonly detail: string };

export interface Asking {
  readonly settings: Settings;
  readonly server: ControlPlane;
  readonly session: Session;
}

const holdingFile = "holding";
/** What keeps everybody else out. */
const writing: ReadonlySet<string> = new Set(["MUTATES", "DELETES", "RENAMES"]);

/** What it holds is renewed first, which also tells what need not be asked for again. */
export async function lease(
  { settings, server, session }: Asking,
  wanted: readonly Intent[],
  purpose: string,
  waitMs = settings.waitMs,
): Promise<Verdict> {
  const held = await renew({ settings, server, session }, false);
  const isHeld = (name: string) => held.some((own) => writing.has(own.predicate) && covers(own.resource, name));
  const intents = wanted.filter(({ resource, to }) => !(isHeld(resource) && (to === undefined || isHeld(to))));
  if (intents.length === 0) return { kind: "granted" };
  const wish = {
    agent_id: session.agentId,
    intents,
    ttl_ms: settings.ttlMs,
    wait_timeout_ms: waitMs,
    hold_ms: waitMs,
    purpose,
  };
  noteHolding(session);
  const { status, body } = await callAs(session, server, (token) =>
    server.call("POST", "/v1/acquire", wish, { token, holdMs: waitMs }),
  );
  if (status === 200) {
    // Once more: another hook of this agent may have released all, and said so, in between.
    noteHolding(session);
    return { kind: "granted" };
  }
  const { error, detail, blocked_by: by, blocked_by_total: total, request_id: request } = body;
  if (status === 202 && typeof request === "string") {
    // It would go on waiting in line without anybody who collects it.
    await callAs(session, server, (token) =>
      server.call("DELETE", `/v1/requests/${encodeURIComponent(request)}`, undefined, { token }),
    );
  }
  if (Array.isArray(by) && by.length > 0) {
    const blockers = by as readonly Blocker[];
    return { kind: "blocked", isDead: error === "die", blockers, total: typeof total === "number" ? total : by.length };
  }
  if (error === "wait_timeout") return await whoIsThere({ settings, server, session }, intents);
  return { kind: "refused", detail: String(detail ?? error ?? `the server answers ${status}`) };
}

/** The end of a wait does not say who was in the way; a dry run does. */
async function whoIsThere({ server, session }: Asking, intents: readonly Intent[]): Promise<Verdict> {
  const wish = { agent_id: session.agentId, intents, wait_timeout_ms: 0, dry_run: true };
  const { body } = await callAs(session, server, (token) => server.call("POST", "/v1/acquire", wish, { token }));
  const { blocked_by: by, blocked_by_total: total } = body;
  const blockers = Array.isArray(by) ? (by as readonly Blocker[]) : [];
  if (blockers.length === 0) return { kind: "refused", detail: "it was held until just now; try again" };
  return { kind: "blocked", isDead: false, blockers, total: typeof total === "number" ? total : blockers.length };
}

/** Written before anything is asked for, so that it is there whenever the agent may hold something. */
function noteHolding({ agentFolder }: Session): void {
  writePrivate(join(agentFolder, holdingFile), "");
}

/** False only if it holds nothing for certain: then most hooks need no server. */
function mayHold(session: Session): boolean {
  return readPrivate(join(session.agentFolder, holdingFile)) !== null && isRegistered(session);
}

/** All that it holds, for another TTL. */
export async function renew({ server, session }: Asking, isActive: boolean): Promise<readonly Lease[]> {
  if (!mayHold(session)) return [];
  const { status, body } = await callAs(session, server, (token) =>
    server.call("POST", "/v1/heartbeat", { agent_id: session.agentId, activity: isActive }, { token }),
  );
  const { leases } = body as { readonly leases?: readonly Lease[] };
  return status === 200 && Array.isArray(leases) ? leases : [];
}

interface WrittenFile {
  readonly resource: string;
  readonly path: string;
}

/** For the version that is reported at the end (A6). */
export function noteWrote({ agentFolder }: Session, { resource, path }: WrittenFile): void {
  writePrivate(join(agentFolder, "wrote", fileName(path)), JSON.stringify({ resource, path }));
}

/** Gives all back; how many there were. */
export async function releaseAll({ server, session }: Asking): Promise<number> {
  if (!mayHold(session)) return 0;
  const folder = join(session.agentFolder, "wrote");
  const versions: Record<string, string> = {};
  for (const name of filesIn(folder)) {
    const wrote = readPrivateJson(join(folder, name), isWrittenFile);
    if (wrote !== null) versions[wrote.resource] = versionOf(wrote.path);
  }
  const { status, body } = await callAs(session, server, (token) =>
    server.call("POST", "/v1/release", { agent_id: session.agentId, versions }, { token }),
  );
  remove(folder);
  const { leases } = body as { readonly leases?: unknown };
  if (status !== 200 || !Array.isArray(leases)) return 0;
  remove(join(session.agentFolder, holdingFile));
  return leases.length;
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isWrittenFile(value: unknown): value is WrittenFile {
  if (typeof value !== "object" || value === null) return false;
  const { resource, path } = value as Partial<Record<keyof WrittenFile, unknown>>;
  return typeof resource === "string" && typeof path === "string";
}

/** What others hold in this repository. */
export async function heldByOthers(
  server: ControlPlane,
  name: string,
  own: readonly string[],
  pagesMax = 10,
): Promise<readonly Lease[]> {
  const found: Lease[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < pagesMax; page++) {
    const query = new URLSearchParams({
      resource: `FILE:/${name}/**`,
      limit: "1000",
      ...(cursor !== null && { cursor }),
    });
    const { status, body } = await server.call("GET", `/v1/leases?${query}`);
    const { detail, error } = body;
    if (status !== 200) throw new Error(String(detail ?? error ?? status));
    const { leases, next_cursor: next } = body as {
      readonly leases?: readonly Lease[];
      readonly next_cursor?: string | null;
    };
    found.push(...(leases ?? []).filter(({ agent_id: agent }) => !own.includes(agent)));
    if (typeof next !== "string") break;
    cursor = next;
  }
  return found;
}
