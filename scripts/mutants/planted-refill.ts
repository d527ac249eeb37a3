/** Faults in units that come back with time (G15). */
import type { Mutant } from "./planted.ts";

export const refillMutants: readonly Mutant[] = [
  {
    name: "refill: a grant spends nothing",
    file: "leases/lease-life.ts",
    find: "  if (claim.counted !== null) spendUnits(turn, claim.counted, claim.intent.units, terms.binds ? limits.bindMs : 0);\n",
    replace: "",
  },
  {
    name: "refill: a unit comes back with its lease",
    file: "memory/refill.ts",
    find: "  return record.refillMs !== null;",
    replace: "  return record.refillMs === 0;",
  },
  {
    name: "refill: a unit comes back a moment too early",
    file: "memory/refill.ts",
    find: "return Math.ceil((now + span) / apart) * apart;",
    replace: "return Math.floor((now + span) / apart) * apart;",
  },
  {
    name: "refill: nobody is served when units are back",
    file: "memory/refill.ts",
    find: "  freeName(turn, resource.name);\n",
    replace: "",
  },
  {
    name: "refill: a restored limit is unspent",
    file: "restore.ts",
    find: "    scheduleRefill(state, placeResource(tenant, record, canonicalName(record.name))),",
    replace: "    placeResource(tenant, record, canonicalName(record.name)),",
  },
  {
    name: "refill: what was spent since a backup is forgotten",
    file: "lost-history.ts",
    find: "    for (const resource of tenant.resources.values()) spendAll(turn, resource);\n",
    replace: "",
  },
  {
    name: "refill: a holder is in the way of units that come back with time",
    file: "deciding/obstacles.ts",
    find: "  if (!isRefilled(resource)) return addAt(obstacles, resource.node, EXCLUSIVE, holder, place);\n",
    replace: "  addAt(obstacles, resource.node, EXCLUSIVE, holder, place);\n",
  },
  {
    name: "refill: who has spent all units is refused",
    file: "deciding/decide.ts",
    find: "    if (isRefilled(claim.counted)) continue;\n",
    replace: "",
  },
  {
    name: "refill: a holder is wounded for units that come back with time",
    file: "deciding/decide.ts",
    find: "  if (isRefilled(resource)) return unitsFit(resource, place, units);\n",
    replace: "",
  },
  {
    name: "refill: every unit has a moment of its own",
    file: "memory/refill.ts",
    find: "(capacity ?? 0) <= limits.refillMomentsMax ? 1",
    replace: "(capacity ?? 0) <= limits.unitsMax ? 1",
  },
  {
    name: "refill: what cells have yet to set up counts as granted when that began",
    file: "memory/refill.ts",
    find: "withSpent(spent, { at: backFrom(resource.record, turn.now + laterMs), units })",
    replace: "withSpent(spent, { at: backFrom(resource.record, turn.now + 0 * laterMs), units })",
  },
  {
    name: "refill: what cells have set up at once counts as if they had taken their longest",
    file: "memory/refill.ts",
    find: "setSpent(turn, resource, withSpent(left, { at: backFrom(resource.record, turn.now), units }));",
    replace: "setSpent(turn, resource, withSpent(left, { at, units }));",
  },
];
