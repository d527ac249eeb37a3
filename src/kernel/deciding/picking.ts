/**
 * `"pick": "any"`: the holder names a pattern, and one declared resource that it matches is chosen for it. What can be
 * granted now comes first, the least loaded of it; otherwise the one with the shortest queue, where it waits as
 * a request for that name would (W2). While it waits it may be granted another one instead: only one for which
 * nobody waits, so that nobody is passed over and no wait is turned round.
 */
import { decidingPriority } from "../agents/agent-life.ts";
import { limits } from "../contract/limits.ts";
import type { Intent, Millis } from "../contract/records.ts";
import { deny, refuse } from "../contract/refusals.ts";
import { eachAt, type Place } from "../index/placed-lists.ts";
import { search } from "../index/resource-search.ts";
import {
  type AgentEntry,
  findRoot,
  type Holder,
  type RequestEntry,
  type ResourceEntry,
  type TenantEntry,
} from "../memory/state.ts";
import { nameCovers, namesOverlap } from "../names/pattern.ts";
import { canonicalName, type ResourceName } from "../names/resource-name.ts";
import { bar, barOn } from "./admission.ts";
import type { Decision } from "./decide.ts";
import {
  type Claim,
  claimsOf,
  type LinkedClaim,
  lastPlace,
  type Manifest,
  makeClaim,
  ownUnits,
  placeOf,
  unitsClaimed,
} from "./manifest.ts";
import { isFree } from "./obstacles.ts";

/** The manifest with a name for each intent, or why there is none. */
export function pickNames(
  tenant: TenantEntry,
  agent: AgentEntry,
  manifest: Manifest,
  now: Millis,
): Manifest | NothingToPick {
  const picked = pickFor(tenant, agent, manifest.intents, decidingPriority(tenant, agent, now));
  return picked.type === "picked" ? { ...manifest, picked: picked.names, claims: picked.claims } : picked;
}

export interface Picked {
  readonly type: "picked";
  /** For each intent. */
  readonly names: readonly string[];
  readonly claims: readonly LinkedClaim[];
}

type NothingToPick = Exclude<Decision, { readonly type: "grant" }>;

export function pickFor(
  tenant: TenantEntry,
  holder: Holder,
  intents: readonly Intent[],
  priority: number,
): Picked | NothingToPick {
  const isWaitDie = tenant.record.settings.strategy === "wait_die";
  const place = isWaitDie ? lastPlace : placeOf(tenant, priority, Number.POSITIVE_INFINITY);
  const picked = intents.map(({ resource }) => resource);
  const taken = new Set(intents.flatMap(({ pick, resource, to }) => (pick === null ? [resource, to] : [])));
  for (const [index, intent] of intents.entries()) {
    if (intent.pick === null) continue;
    const field = `intents.${index}.resource`;
    const pattern = canonicalName(intent.resource);
    const matching = matchesOf(tenant, pattern);
    if (matching.length === 0)
      return refuse("resource_unknown", `No declared resource matches ${pattern.text}.`, { field });
    if (matching.length > limits.pickMatchesMax) {
      return refuse("invalid_resource", `${pattern.text} matches over ${limits.pickMatchesMax} resources; narrow it.`, {
        field,
      });
    }
    const ready = matching.filter(({ name }) => barOn(tenant, name) === null && !taken.has(name.text));
    if (ready.length === 0) {
      return bar(
        "cell_not_ready",
        `Of the resources that ${pattern.text} matches none is ready; look at their cells and fences.`,
      );
    }
    const roomy = ready.filter(({ record: { capacity } }) => capacity === null || capacity >= intent.units);
    if (roomy.length === 0) {
      return deny("capacity", `No resource of ${pattern.text} has ${intent.units} units in all.`);
    }
    const { name } = freest(tenant, holder, intent, roomy, place) ?? shortestQueue(holder, intent, roomy);
    picked[index] = name.text;
    taken.add(name.text);
  }
  return { type: "picked", names: picked, claims: claimsOf(tenant, intents, picked) };
}

/** A task may be created before what it is to have; that it can choose from nothing yet is worth a word. */
export function pickWarnings(tenant: TenantEntry, intents: readonly Intent[]): string[] {
  return intents
    .filter(({ pick, resource }) => pick !== null && matchesOf(tenant, canonicalName(resource)).length === 0)
    .map(({ resource }) => `No declared resource matches ${resource} yet; the task waits for one.`);
}

/** In the order of their names, which does not depend on how the search went. */
function matchesOf(tenant: TenantEntry, pattern: ResourceName): ResourceEntry[] {
  const found: ResourceEntry[] = [];
  const root = findRoot(tenant, pattern.type);
  if (root === undefined) return found;
  search(root, pattern, {
    visit({ mark }) {
      const resource = mark as ResourceEntry | null;
      if (resource !== null && !resource.name.wild && nameCovers(pattern, resource.name)) found.push(resource);
      return found.length > limits.pickMatchesMax;
    },
    below: (_node, branch) => (branch.marks > 0 ? "enter" : "skip"),
  });
  return found.sort((a, b) => (a.record.name < b.record.name ? -1 : 1));
}

/** Of those that can be granted at this place of the queue the least loaded, then the one fewest wait for. */
function freest(
  tenant: TenantEntry,
  holder: Holder,
  intent: Intent,
  resources: readonly ResourceEntry[],
  place: Place,
): ResourceEntry | undefined {
  const inOrder = [...resources].sort((a, b) => loadOf(a) - loadOf(b) || waitersOf(a) - waitersOf(b));
  return inOrder.find(({ name }) => {
    const claim = makeClaim(tenant, intent, name);
    return isFree(tenant, claim, holder, place, claim.counted === null ? 0 : intent.units);
  });
}

/** Of several the least loaded. Where one's own units leave no room one would wait for oneself (C6): that comes last. */
function shortestQueue(holder: Holder, { units }: Intent, resources: readonly ResourceEntry[]): ResourceEntry {
  const isOwn = (resource: ResourceEntry): number => {
    const { capacity } = resource.record;
    return capacity !== null && ownUnits(resource, holder) + units > capacity ? 1 : 0;
  };
  const [first, ...others] = resources;
  if (first === undefined) throw new Error("There is nothing to choose from.");
  return others.reduce((best, one) => {
    const difference = isOwn(one) - isOwn(best) || waitersOf(one) - waitersOf(best) || loadOf(one) - loadOf(best);
    return difference < 0 ? one : best;
  }, first);
}

/** The share of its units that is in use; what has no units is one. */
function loadOf({ heldUnits, record }: ResourceEntry): number {
  return heldUnits / (record.capacity ?? 1);
}

function waitersOf({ node: { waiting } }: ResourceEntry): number {
  let count = 0;
  eachAt(waiting, () => count++);
  return count;
}

/** What each intent leaves open, for as long as the request waits. */
export function patternsOf(intents: readonly Intent[]): ResourceName[] {
  return intents.map(({ resource }) => canonicalName(resource));
}

/** Where it did not stand in line it comes after everybody who does. */
const elsewhere: Place = lastPlace;

export function placeIn({ claims: [first] }: RequestEntry): Place {
  return first ?? lastPlace;
}

/** Names with which the whole manifest could be granted at once (W6); null: there are none. */
export function findOthers(
  tenant: TenantEntry,
  { record, claims, holder }: RequestEntry,
  patterns: readonly ResourceName[],
  freed: readonly ResourceName[],
): string[] | null {
  const { intents } = record;
  const picked = [...record.picked];
  const ownPlace = new Map(claims.map((claim) => [claim.name.text, claim]));
  const isFreeAt = (claim: Claim, units: number): boolean =>
    isFree(tenant, claim, holder, ownPlace.get(claim.name.text) ?? elsewhere, units);
  const isFixed = (at: number): boolean => intents[at]?.pick === null;
  // Where more than the freed name decides, all that match are looked at.
  const picksCount = intents.filter(({ pick }) => pick !== null).length;
  const needsAll =
    picksCount > 1 ||
    freed.some((name) => name.wild || patterns.some((one, at) => isFixed(at) && namesOverlap(one, name)));
  for (const [at, intent] of intents.entries()) {
    const pattern = patterns[at];
    if (intent.pick === null || pattern === undefined) continue;
    const current = makeClaim(tenant, intent, canonicalName(picked[at] ?? intent.resource));
    if (isFreeAt(current, current.counted === null ? 0 : intent.units)) continue;
    const options = (needsAll ? matchesOf(tenant, pattern) : matchesAmong(tenant, pattern, freed)).filter(
      ({ name, record: { capacity } }) =>
        !picked.includes(name.text) &&
        !ownPlace.has(name.text) &&
        (capacity === null || capacity >= intent.units) &&
        barOn(tenant, name) === null,
    );
    const other = freest(tenant, holder, intent, options, elsewhere);
    if (other === undefined) return null;
    picked[at] = other.name.text;
  }
  const wanted = claimsOf(tenant, intents, picked);
  return wanted.every(({ claim }) => isFreeAt(claim, unitsClaimed(wanted, claim))) ? picked : null;
}

function matchesAmong(
  { resources }: TenantEntry,
  pattern: ResourceName,
  names: readonly ResourceName[],
): ResourceEntry[] {
  const found = new Set<ResourceEntry>();
  for (const name of names) {
    const resource = nameCovers(pattern, name) ? resources.get(name.text) : undefined;
    if (resource !== undefined) found.add(resource);
  }
  return [...found].sort((a, b) => (a.record.name < b.record.name ? -1 : 1));
}
