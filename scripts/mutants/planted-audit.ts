/** Wrong changes to the audit log (S7). */
import type { Mutant } from "./planted.ts";

export const auditMutants: readonly Mutant[] = [
  {
    name: "audit: refused commands are logged too",
    file: "audit.ts",
    find: 'if (reply.type === "refused" || !isAbove(command.actor)) return;',
    replace: "if (!isAbove(command.actor)) return;",
  },
  {
    name: "audit: what is hidden on the wire is logged",
    file: "audit.ts",
    find: "if (field.wire === null || value === null || value === undefined) continue;",
    replace: "if (value === null || value === undefined) continue;",
  },
];
