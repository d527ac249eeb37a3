/**
 * Decodes what an agent asks for: each fault has its own code, and nothing is guessed (S3, C3). Intents become claims (C6,
 * C7): names parsed, with their place in the queue and the units of counted resources.
 */
import type { Acquire } from "../contract/commands.ts";
import { checkTerms } from "../contract/inputs.gen.ts";
import type { IntentInput } from "../contract/inputs.ts";
import { limits } from "../contract/limits.ts";
import { EXCLUSIVE, readPredicate, type Strength, strengths } from "../contract/predicates.ts";
import type { Intent, Lease } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal } from "../contract/replies.ts";
import { isBefore, type Place, some } from "../index/placed-lists.ts";
import type { Holder, ResourceEntry, TenantEntry, WaitingClaim } from "../memory/state.ts";
import { fingerprint } from "../names/fingerprint.ts";
import { canonicalName, parseResourceName, type ResourceName } from "../names/resource-name.ts";

export interface Manifest {
  readonly type: "manifest";
  readonly intents: readonly Intent[];
  readonly claims: readonly LinkedClaim[];
  /** Where an intent has `pick`: what each stands for (see picking.ts). */
  readonly picked: readonly string[];
  readonly ttl: number;
  readonly waitTimeout: number;
  readonly warnings: readonly string[];
  /** Of the request, if it has a key (W10). */
  readonly fingerprint: string;
}

const none: readonly string[] = [];

export function readManifest(tenant: TenantEntry, command: Acquire): Manifest | Refusal {
  const read = readIntents(tenant, command.intents);
  if ("code" in read) return read;
  const { intents, claims } = read;
  const { settings } = tenant.record;
  const { ttlMs, waitTimeoutMs } = command;
  const problem = checkTerms(command);
  if (problem !== null) return problem;
  let warnings = none;
  let ttl = ttlMs ?? Math.min(settings.ttlMsDefault, settings.ttlMsMax);
  if (ttl > settings.ttlMsMax) {
    ttl = settings.ttlMsMax;
    warnings = [...warnings, `ttl_ms was capped at ${ttl}.`];
  }
  let waitTimeout = waitTimeoutMs ?? Math.min(settings.waitTimeoutMsDefault, settings.waitTimeoutMsMax);
  if (waitTimeout > settings.waitTimeoutMsMax) {
    waitTimeout = settings.waitTimeoutMsMax;
    warnings = [...warnings, `wait_timeout_ms was capped at ${waitTimeout}.`];
  }
  const print = command.requestKey === null ? "" : fingerprintOf(command, intents);
  return { type: "manifest", intents, claims, picked: none, ttl, waitTimeout, warnings, fingerprint: print };
}

interface ReadIntents {
  readonly intents: readonly Intent[];
  readonly claims: readonly LinkedClaim[];
}

/** An agent's manifest, or that of a task. */
export function readIntents(tenant: TenantEntry, inputs: readonly IntentInput[]): ReadIntents | Refusal {
  const [only] = inputs;
  if (only === undefined)
    return refuse("empty_manifest", "A manifest needs at least one intent.", { field: "intents" });
  // Most have one; a list that grows takes more memory than all else here.
  if (inputs.length === 1) return readIntent(tenant, only, 0, 0);
  if (inputs.length > limits.intentsMax) {
    return refuse("manifest_too_large", `A manifest takes at most ${limits.intentsMax} intents; split the work.`, {
      field: "intents",
    });
  }
  const intents: Intent[] = [];
  const claims: LinkedClaim[] = [];
  for (const input of inputs) {
    const read = readIntent(tenant, input, intents.length, claims.length);
    if ("code" in read) return read;
    for (const intent of read.intents) intents.push(intent);
    for (const claim of read.claims) claims.push(claim);
  }
  const duplicate = findDuplicate(intents);
  if (duplicate === null) return { intents, claims };
  return refuse("duplicate_intent", "The manifest names the same intent twice; send it once.", {
    field: `intents.${duplicate}`,
  });
}

/** `at`: its place among the intents; `claimAt`: that of its first claim among the claims. */
function readIntent(tenant: TenantEntry, input: IntentInput, at: number, claimAt: number): ReadIntents | Refusal {
  const predicate = readPredicate(input.predicate);
  if (predicate === undefined) {
    return refuse(
      "invalid_predicate",
      "The predicate is one of PROVIDES, CONSUMES, MUTATES, DELETES, DEPENDS_ON, RENAMES.",
      { field: `intents.${at}.predicate` },
    );
  }
  const units = input.units ?? 1;
  if (!(Number.isSafeInteger(units) && units >= 1 && units <= limits.unitsMax)) {
    return refuse("invalid_units", `units is a whole number from 1 to ${limits.unitsMax}.`, {
      field: `intents.${at}.units`,
    });
  }
  const name = readName(input.resource, "resource", at);
  if ("code" in name) return name;
  const to = input.to ?? null;
  if ((predicate === "RENAMES") !== (to !== null)) {
    return refuse("invalid_target", "RENAMES, and nothing else, names its target in `to`.", {
      field: `intents.${at}.to`,
    });
  }
  if (to === null) {
    const intent: Intent = { predicate, resource: name.text, units, to: null, pick: input.pick ?? null };
    return { intents: [intent], claims: [{ claim: makeClaim(tenant, intent, name), linkedIndex: null }] };
  }
  if (input.pick === "any") {
    return refuse("invalid_target", "A rename says what it renames; leave pick out.", {
      field: `intents.${at}.pick`,
    });
  }
  const target = readName(to, "to", at);
  if ("code" in target) return target;
  if (target.text === name.text) {
    return refuse("invalid_target", "A rename needs a target that is another name.", {
      field: `intents.${at}.to`,
    });
  }
  const intent: Intent = { predicate, resource: name.text, units, to: target.text, pick: null };
  const from = { claim: makeClaim(tenant, intent, name), linkedIndex: claimAt + 1 };
  return { intents: [intent], claims: [from, { claim: makeClaim(tenant, intent, target), linkedIndex: claimAt }] };
}

/** A name that an agent may lease; tasks are leased through the queue only. `index`: of the intent whose field it is. */
export function readName(text: string, field: string, index: number | null = null): ResourceName | Refusal {
  const name = parseResourceName(text);
  if (!("problem" in name) && name.type !== "TASK") return name;
  // Joined for a refusal only.
  const at = { field: index === null ? field : `intents.${index}.${field}` };
  if ("problem" in name) return refuse("invalid_resource", name.problem, at);
  return refuse("reserved_resource", "TASK is reserved: tasks are leased by polling for them.", at);
}

/** C2: only exact duplicates are refused. */
function findDuplicate(intents: readonly Intent[]): number | null {
  const seen = new Set<string>();
  for (const [index, { predicate, resource, to }] of intents.entries()) {
    const text = `${predicate} ${resource} ${to ?? ""}`;
    if (seen.has(text)) return index;
    seen.add(text);
  }
  return null;
}

/** Tells a repeated request from another one under the same key (W10). Not secret: two 32-bit FNV-1a sums will do. */
function fingerprintOf(command: Acquire, intents: readonly Intent[]): string {
  const { ttlMs, waitTimeoutMs, standbyMs, idleTimeoutMs, purpose, tokens } = command;
  // Without a choice and standby it is the sum that was taken before there was one: stored requests are found again.
  const asked = leavesChoice(intents)
    ? intents
    : intents.map(({ predicate, resource, units, to }) => ({ predicate, resource, units, to }));
  const terms = [asked, ttlMs, waitTimeoutMs, idleTimeoutMs, purpose, tokens];
  return fingerprint(JSON.stringify(standbyMs === 0 ? terms : [...terms, standbyMs]));
}

/** An intent on its way to a lease: its name parsed, its strength where it will stand. */
export interface Claim {
  readonly intent: Intent;
  readonly name: ResourceName;
  readonly strength: Strength;
  /** The counted resource of exactly this name, where units are what conflicts. */
  readonly counted: ResourceEntry | null;
}

/** A place after every waiter. */
export const lastPlace: Place = { order: Number.POSITIVE_INFINITY, suborder: 0 };

export function makeClaim(tenant: TenantEntry, intent: Intent, name: ResourceName): Claim {
  const resource = tenant.resources.size === 0 ? undefined : tenant.resources.get(name.text);
  const counted = resource !== undefined && resource.record.capacity !== null ? resource : null;
  return { intent, name, strength: counted === null ? strengths[intent.predicate] : EXCLUSIVE, counted };
}

/** What the lease would be asked for with. */
export function claimOfLease(tenant: TenantEntry, { predicate, resource, units }: Lease, name: ResourceName): Claim {
  return makeClaim(tenant, { predicate, resource, units, to: null, pick: null }, name);
}

/** One claim per name: a rename is two, each linked to the other (C7). */
export interface LinkedClaim {
  readonly claim: Claim;
  readonly linkedIndex: number | null;
}

export function claimsOf(
  tenant: TenantEntry,
  intents: readonly Intent[],
  picked: readonly string[] = nothingPicked,
): LinkedClaim[] {
  const claims: LinkedClaim[] = [];
  let at = 0;
  for (const intent of intents) {
    const claim = makeClaim(tenant, intent, canonicalName(picked[at++] ?? intent.resource));
    if (intent.to === null) claims.push({ claim, linkedIndex: null });
    else {
      claims.push({ claim, linkedIndex: claims.length + 1 });
      claims.push({ claim: makeClaim(tenant, intent, canonicalName(intent.to)), linkedIndex: claims.length - 1 });
    }
  }
  return claims;
}

const nothingPicked: readonly string[] = [];

/** C6: what the manifest takes of the claim's counted resource altogether. */
export function unitsClaimed(claims: readonly { readonly claim: Claim }[], { counted }: Claim): number {
  if (counted === null) return 0;
  let units = 0;
  for (const { claim } of claims) if (claim.counted === counted) units += claim.intent.units;
  return units;
}

/** Where the request stands in the queue: by arrival, or under Wound-Wait by age (W3, W7). */
export function placeOf(tenant: TenantEntry, priority: number, arrival: number): Place {
  return tenant.record.settings.strategy === "wait_die"
    ? { order: arrival, suborder: 0 }
    : { order: priority, suborder: arrival };
}

export function needsCells(tenant: TenantEntry, claims: readonly LinkedClaim[]): boolean {
  return claims.some(({ claim }) => cellOf(tenant, claim) !== null);
}

/** The cell that hosts the resource, if it is bound (G6). */
export function cellOf(tenant: TenantEntry, { name }: Claim): string | null {
  return tenant.resources.size === 0 ? null : (tenant.resources.get(name.text)?.record.cell ?? null);
}

export function leavesChoice(intents: readonly Intent[]): boolean {
  for (const { pick } of intents) if (pick === "any") return true;
  return false;
}

/** C6: units of all holders, of waiters ahead, and those wanted, within the capacity. */
export function unitsFit(resource: ResourceEntry, place: Place, unitsClaimed: number): boolean {
  return resource.heldUnits + unitsAhead(resource, place) + unitsClaimed <= (resource.record.capacity ?? 0);
}

export function unitsAhead(resource: ResourceEntry, place: Place): number {
  if (place.order === Number.POSITIVE_INFINITY) return resource.waitingUnits;
  let units = 0;
  some(resource.node.waiting?.exclusive ?? null, (item) => {
    if (!isBefore(item, place)) return undefined;
    units += (item as WaitingClaim).intent.units;
    return false;
  });
  return units;
}

/** Units that the holder itself holds or waits for; waiting for those would be waiting for oneself (C6). */
export function ownUnits(resource: ResourceEntry, holder: Holder): number {
  let units = 0;
  for (let lease = holder.leases; lease !== null; lease = lease.nextOfHolder) {
    if (lease.node === resource.node) units += lease.record.units;
  }
  for (const request of holder.open) {
    for (const claim of request.claims) if (claim.node === resource.node) units += claim.intent.units;
  }
  return units;
}
