/** Keys: who may speak, for how long, and what belongs to whom (L13, S5). Secrets are drawn and checked at the edge. */
import { checkValues } from "../contract/bounds.ts";
import {
  type AssignName,
  type CreateKey,
  commands,
  type DeleteKey,
  keyInput,
  type NoteKeyUses,
  type RotateKey,
} from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { Key, Millis, Role } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import { requireOperator } from "../memory/actors.ts";
import { createEntry } from "../memory/entries.ts";
import { changed, type KeyEntry, type State, type TenantEntry, type Turn } from "../memory/state.ts";
import { noteScopes } from "../policies/permissions.ts";
import { updateWorker } from "../tasks/workers.ts";
import { readScopes } from "./policies.ts";

export function createKey(state: State, command: CreateKey, now: Millis): Reply {
  const refusal = requireOperator(command.actor);
  if (refusal !== null) return refusal;
  const { key: input } = command;
  const scopes = readScopes(input);
  if (scopes !== null && "code" in scopes) return scopes;
  const invalid = checkValues(keyInput, input) ?? whyNotUntil(input.expiresAt, now);
  if (invalid !== null) return invalid;
  const key: Key = { ...input, scopes, tenant: input.tenant ?? command.tenant, createdAt: now, ...unused };
  if (!state.tenants.has(key.tenant))
    return refuse("tenant_unknown", "There is no such tenant; create it first.", { field: "tenant_id" });
  if (state.keys.has(key.id)) return refuse("key_exists", "There is a key of this id already.", { field: "key_id" });
  const entry = createEntry("key", key);
  state.keys.set(key.id, entry);
  if (scopes !== null) noteScopes(state);
  changed({ state }, entry);
  return { type: "key", key };
}

const unused = { lastUsedAt: null, rotatedAt: null, formerHash: null, formerUntil: null, generation: 1 };

function whyNotUntil(expiresAt: Millis | null, now: Millis): Refusal | null {
  if (expiresAt === null || expiresAt > now) return null;
  return refuse("invalid_key", "expires_at must be a time to come; leave it out for a key without an end.", {
    field: "expires_at",
  });
}

/** The tokens that were drawn from it end with it. What it owned is then for those above, until it is assigned (L13). */
export function deleteKey(state: State, command: DeleteKey, now: Millis): Reply {
  const entry = findKey(state, command);
  if ("code" in entry) return entry;
  if (isLastOperator(state, entry, now)) {
    const detail =
      "This is the last operator's key: without it nobody could make another, and without any key the service would " +
      "be open to all of this machine. Create another operator's key first, or rotate this one.";
    return refuse("last_operator_key", detail, { field: "key_id" });
  }
  state.keys.delete(command.keyId);
  entry.alive = false;
  changed({ state }, entry);
  return { type: "key", key: entry.record };
}

/** The last that is still good, or the last key of all: its end would end the keys' time (S5). */
function isLastOperator({ keys }: State, { record: key }: KeyEntry, now: Millis): boolean {
  if (keys.size === 1) return true;
  const isGood = ({ role, expiresAt }: Key): boolean => role === "operator" && (expiresAt === null || expiresAt > now);
  if (!isGood(key)) return false;
  for (const { record } of keys.values()) if (record !== key && isGood(record)) return false;
  return true;
}

/** It stays the same key, so the new secret owns what the former one owned, and the ledger names one key throughout. */
export function rotateKey(state: State, command: RotateKey, now: Millis): Reply {
  const entry = findKey(state, command);
  if ("code" in entry) return entry;
  const { record: key } = entry;
  const { hash, overlapMs } = command;
  const expiresAt = command.expiresAt ?? key.expiresAt;
  const invalid = checkValues(commands.rotate_key, command) ?? whyNotUntil(expiresAt, now);
  if (invalid !== null) return invalid;
  const formerUntil = Math.min(now + overlapMs, key.expiresAt ?? Number.POSITIVE_INFINITY);
  const hasOverlap = formerUntil > now;
  return changeKey(state, entry, {
    ...key,
    hash,
    expiresAt,
    rotatedAt: now,
    formerHash: hasOverlap ? key.hash : null,
    formerUntil: hasOverlap ? formerUntil : null,
    generation: key.generation + 1,
  });
}

function changeKey(state: State, entry: KeyEntry, key: Key): Reply {
  entry.record = key;
  changed({ state }, entry);
  return { type: "key", key };
}

function findKey(state: State, { actor, keyId }: Pick<DeleteKey, "actor" | "keyId">): KeyEntry | Refusal {
  return (
    requireOperator(actor) ??
    state.keys.get(keyId) ??
    refuse("key_unknown", "There is no such key.", { field: "key_id" })
  );
}

/** The key's own tenant is meant. Live leases and bindings stay as they are; the next caller must be its new owner. */
export function assignName(state: State, command: AssignName, now: Millis): Reply {
  const entry = findKey(state, command);
  if ("code" in entry) return entry;
  const { record: key } = entry;
  const tenant = state.tenants.get(key.tenant);
  if (tenant === undefined) return refuse("tenant_unknown", "The key's tenant is unknown.", { field: "key_id" });
  const refusal = assign({ state, tenant, now }, key, command.name);
  return refusal ?? { type: "key", key };
}

function assign(turn: Turn, key: Key, { agentId, workerId, cellId }: AssignName["name"]): Refusal | null {
  const { tenant } = turn;
  if (agentId != null) return whyNotFor(key, "agent") ?? assignAgent(turn, tenant, agentId, key.id);
  if (workerId != null) {
    const worker = tenant.book.workers.get(workerId);
    const refusal = whyNotFor(key, "worker");
    if (refusal !== null) return refusal;
    if (worker === undefined)
      return refuse(
        "worker_unknown",
        "There is no such worker; a new worker_id is the first key's that polls with it.",
        {
          field: "worker_id",
        },
      );
    updateWorker(turn, worker, { keyId: key.id });
    return null;
  }
  const refusal = whyNotFor(key, "cell");
  if (refusal !== null) return refusal;
  const cell = tenant.cells.get(cellId ?? "");
  if (cell === undefined) return refuse("cell_unknown", "There is no such cell.", { field: "cell" });
  cell.record = { ...cell.record, keyId: key.id };
  changed(turn, cell);
  return null;
}

function assignAgent(turn: Turn, { agents }: TenantEntry, agentId: string, registeredBy: string): Refusal | null {
  const agent = agents.get(agentId);
  if (agent === undefined) return refuse("agent_unknown", "There is no such agent.", { field: "agent_id" });
  agent.record = { ...agent.record, registeredBy };
  changed(turn, agent);
  return null;
}

/** A key that could not use the name is named by mistake. */
function whyNotFor({ role }: Key, wanted: Role): Refusal | null {
  if (role === wanted) return null;
  return refuse("invalid_key", `The key has the role ${role}; this takes one with the role ${wanted}.`, {
    field: "key_id",
  });
}

/** Kept to the minute: a busy key would be written with every batch. */
export function noteKeyUses(state: State, { actor, uses }: NoteKeyUses): Reply {
  const refusal = requireOperator(actor);
  if (refusal !== null) return refusal;
  for (const { keyId, at } of uses) {
    const entry = state.keys.get(keyId);
    if (entry === undefined || at < (entry.record.lastUsedAt ?? Number.NEGATIVE_INFINITY) + limits.keyUseMs) continue;
    changeKey(state, entry, { ...entry.record, lastUsedAt: at });
  }
  return { type: "done" };
}
