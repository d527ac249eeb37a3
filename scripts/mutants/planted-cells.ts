/** Mutants of what cells are heard for, of picking, and of quotas by type (see planted.ts). */
import type { Mutant } from "./planted.ts";
import { refillMutants } from "./planted-refill.ts";

export const cellMutants: readonly Mutant[] = [
  ...refillMutants,
  // What a token opens (G4)
  {
    name: "cells: a provider only reads",
    file: "contract/predicates.ts",
    find: "return strengths[predicate] === SHARED;",
    replace: "return strengths[predicate] <= PROVIDING;",
  },
  // Enrolling and comparing (G6, G7)
  {
    name: "cells: a lease that its cell has lost lives on",
    file: "commands/cell-enrol.ts",
    find: 'if (binding === null) return finishGone(turn, lease, "REVOKED", lost);',
    replace: "if (binding === null) return [];",
  },
  {
    name: "cells: what a cell is still taking down counts as free",
    file: "commands/cell-enrol.ts",
    find: "if (binding !== null) return;",
    replace: "if (binding !== null && binding.endedAs === null) return;",
  },
  {
    name: "cells: a cell that knows of a later grant is believed",
    file: "commands/cell-enrol.ts",
    find: "if (binding.endedAs === null && !isAhead(binding, record)) return;",
    replace: "if (binding.endedAs === null) return;",
  },
  {
    name: "cells: a binding that nobody knows stays",
    file: "commands/cell-enrol.ts",
    find: "if (!alive.has(leaseId)) teardown.push(",
    replace: "if (false) teardown.push(",
  },
  {
    name: "cells: what was lost before it was granted is granted",
    file: "commands/cell-enrol.ts",
    find: "else if (binding === null && record.cellBy === null) awaitAgain(turn, lease);",
    replace: "",
  },
  {
    name: "cells: coming back readmits a withdrawn cell",
    file: "commands/cell-enrol.ts",
    find: "withdrawn: known?.record.withdrawn ?? false,",
    replace: "withdrawn: false,",
  },
  {
    name: "cells: any key takes any cell",
    file: "memory/actors.ts",
    find: "if (cell === undefined || isOwn(actor, cell.record.keyId)) return null;",
    replace: "if (cell === undefined || cell.record.keyId !== null) return null;",
  },
  {
    name: "cells: an older session is heard",
    file: "commands/cells.ts",
    find: "  if (cell.record.session !== command.session) return staleSession();\n  const { inventory }",
    replace: "  const { inventory }",
  },
  {
    name: "cells: a late heartbeat brings back who has left",
    file: "resources/cell-life.ts",
    find: 'const session = move === "leave" ? "" : cell.record.session;',
    replace: "const { session } = cell.record;",
  },
  {
    name: "cells: an inventory takes what another cell has",
    file: "commands/cells.ts",
    find: "if (owner !== null && owner !== id) return",
    replace: "",
  },
  {
    name: "cells: what is no longer in the inventory is still leased",
    file: "commands/cells.ts",
    find: "if (!listed.has(resource.record.name)) change(",
    replace: "if (false) change(",
  },
  {
    name: "cells: a fence of the cell's own is not heard of",
    file: "commands/cells.ts",
    find: "for (const { name, reason } of fences) fence(turn, name, reason);",
    replace: "",
  },
  {
    name: "cells: who waits is left waiting when the cell goes",
    file: "resources/cell-life.ts",
    find: "eachAt(heads, (claim) => waiters.add((claim as WaitingClaim).request));",
    replace: "",
  },
  {
    name: "cells: a gone cell's resources are leased",
    file: "deciding/admission.ts",
    find: 'if (cell.state === "GONE") return',
    replace: "if (cell.id === null) return",
  },
  {
    name: "cells: a cell that failed to tear down is believed",
    file: "commands/cells.ts",
    find: "if (command.failure !== null) {",
    replace: "if (command.failure === undefined) {",
  },
  {
    name: "cells: a bound resource is reset on somebody's word",
    file: "commands/resources.ts",
    find: "if (entry.record.cell !== null && !command.probed) {",
    replace: "if (entry.record.cell === null && !command.probed) {",
  },
  {
    name: "cells: a restored kernel never misses a cell",
    file: "resources/cell-life.ts",
    find: "  turn.tenant.cells.set(record.id, entry);\n  scheduleSilence(turn, entry);",
    replace: "  turn.tenant.cells.set(record.id, entry);",
  },

  // Any one of a pattern
  {
    name: "picking: who waits for that very one is passed over",
    file: "deciding/picking.ts",
    find: "const elsewhere: Place = lastPlace;",
    replace: "const elsewhere: Place = { order: 0, suborder: 0 };",
  },
  {
    name: "picking: who stood behind a mover is not served",
    file: "requests/queue.ts",
    find: "for (const name of left) freeName(turn, name);",
    replace: "",
  },
  {
    name: "picking: the fullest is picked",
    file: "deciding/picking.ts",
    find: "loadOf(a) - loadOf(b) || waitersOf(a)",
    replace: "loadOf(b) - loadOf(a) || waitersOf(a)",
  },
  {
    name: "picking: one resource serves two choices of a manifest",
    file: "deciding/picking.ts",
    find: "    taken.add(name.text);\n",
    replace: "",
  },
  {
    name: "picking: what is freed elsewhere is not noticed",
    file: "requests/queue.ts",
    find: "if (tenant.picking.size > 0) servePicking(turn, names);",
    replace: "",
  },
  {
    name: "picking: a crash leaves what was freed elsewhere unserved",
    file: "restore.ts",
    find: 'for (const names of tenant.picking.values()) state.unserved.push({ tenant, names, to: "waiters" });',
    replace: "",
  },
  {
    name: "picking: what is not ready is picked",
    file: "deciding/picking.ts",
    find: "barOn(tenant, name) === null && !taken.has(name.text)",
    replace: "!taken.has(name.text)",
  },

  // Quotas by type (G2)
  {
    name: "kinds: what waits is not counted",
    file: "requests/request-life.ts",
    find: "if (tenant.kindUnits !== null) addKind(tenant, name.text, intent.units);",
    replace: "",
  },
  {
    name: "kinds: what has ended is counted for ever",
    file: "deciding/admission.ts",
    find: "kind.units -= units;",
    replace: "",
  },
  {
    name: "kinds: a quota that is set later does not see what is there",
    file: "deciding/admission.ts",
    find: "for (const { record } of tenant.leases.values()) addKind(tenant, record.resource, record.units);",
    replace: "",
  },
];
