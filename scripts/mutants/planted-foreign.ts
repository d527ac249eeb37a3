/** Wrong changes to what the kernel does with receipts about tasks of other systems (R1, R5, R7, R8). */
import type { Mutant } from "./planted.ts";

export const foreignMutants: readonly Mutant[] = [
  {
    name: "foreign: receipts about others' tasks are taken while that is off",
    file: "commands/foreign-receipts.ts",
    find: "const isTaken = tenant.record.settings.foreignReceipts && unowned;",
    replace: "const isTaken = unowned;",
  },
  {
    name: "foreign: a task of our own that has ended is taken for another's",
    file: "commands/foreign-receipts.ts",
    find: "const isTaken = tenant.record.settings.foreignReceipts && unowned;",
    replace: "const isTaken = tenant.record.settings.foreignReceipts || unowned;",
  },
  {
    name: "foreign: any worker completes what another has accepted",
    file: "commands/foreign-receipts.ts",
    find: "if (!isAbove(actor) && writer !== custodian && writer !== record.acceptedBy)",
    replace: "if (!isAbove(actor) && writer === null)",
  },
  {
    name: "foreign: another of the family believes that it has accepted the task",
    file: "commands/foreign-receipts.ts",
    find: "if (isAbove(actor) || writer === before.acceptedBy)",
    replace: "if (isAbove(actor) || writer !== null)",
  },
  {
    name: "foreign: open obligations have no quota",
    file: "commands/foreign-receipts.ts",
    find: "if (size >= foreignObligationsMax) return",
    replace: "if (size < 0) return",
  },
  {
    name: "foreign: an escalated obligation stays with its custodian",
    file: "tasks/foreign-obligations.ts",
    find: "obligation: { ...obligation, state, custodian: escalationTo }",
    replace: "obligation: { ...obligation, state }",
  },
  {
    name: "foreign: who has escalated a task still speaks for it",
    file: "tasks/foreign-obligations.ts",
    find: "custodian: escalationTo }, acceptedBy: null, receiptId: null }",
    replace: "custodian: escalationTo } }",
  },
  {
    name: "foreign: a closed obligation stays in memory",
    file: "tasks/foreign-obligations.ts",
    find: "  tenant.book.foreign.delete(taskId);\n",
    replace: "  void taskId;\n",
  },
  {
    name: "foreign: the keys of a closed obligation stay in memory",
    file: "tasks/foreign-obligations.ts",
    find: "forgetMarks(tenant, entry, dedupes);",
    replace: "void dedupes;",
  },
  {
    name: "foreign: a restored kernel forgets the keys of others' tasks",
    file: "tasks/foreign-obligations.ts",
    find: "  rememberMarks(tenant, entry);\n  return entry;",
    replace: "  return entry;",
  },
];
