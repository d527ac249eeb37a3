/** What the page needs to hash a receipt in the browser: dashboard/src/ledger/receipt-members.gen.ts. */
import { type FieldData, wireName } from "../../src/kernel/contract/field.ts";
import { receipt } from "../../src/kernel/contract/task-records.ts";

export function pageReceiptText(): string {
  const lines = Object.entries(receipt as Readonly<Record<string, FieldData>>).flatMap(([key, field]) => {
    const line = `  ${wireName(key, field)}: ${field.optional === true},`;
    // The hash before stands second.
    return key === "sequence" ? [line, "  previous_hash: false,"] : [line];
  });
  return `/** Written by scripts/generate.ts from src/kernel/contract. Run \`npm run generate\` to write it again. */

/** The members of a receipt's text in their order, and whether each is left out where it is absent (R6). */
export const receiptMembers: Readonly<Record<string, boolean>> = {
${lines.join("\n")}
};
`;
}
