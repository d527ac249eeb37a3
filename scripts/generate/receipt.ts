/** The text of a receipt that is hashed and stored, from its description: src/ledger/receipt-members.gen.ts. */
import { type FieldData, wireName } from "../../src/kernel/contract/field.ts";
import { receipt } from "../../src/kernel/contract/task-records.ts";

export function receiptText(): string {
  const fields = Object.entries(receipt as Readonly<Record<string, FieldData>>);
  const written = fields.flatMap(([key, field]) => {
    const line = `    ${wireName(key, field)}: ${writeText(field, `receipt.${key}`)},`;
    // The hash before stands second.
    return key === "sequence" ? [line, "    previous_hash: previousHash,"] : [line];
  });
  const read = fields.map(([key, field]) => `    ${key}: ${readText(field, `members.${wireName(key, field)}`)},`);
  const types = fields.map(([key, field]) => {
    const type = field.kind === "time" ? "unknown" : `Receipt["${key}"]`;
    return `  readonly ${wireName(key, field)}${field.optional ? "?" : ""}: ${type}${field.optional && field.kind !== "time" ? " | undefined" : ""};`;
  });
  return `/** Written by scripts/generate.ts from src/kernel/contract. Run \`npm run generate\` to write it again. */
import type { Receipt } from "../kernel/contract/task-records.ts";
import { readTime, timeOf } from "./ledger-json.ts";

/** The members as they stand in the text; what may be left out may be missing. */
export interface ReceiptMembers {
${types.join("\n")}
}

/** The members in their order; what is undefined here is not written. */
export function receiptMembers(receipt: Receipt, previousHash: string): ReceiptMembers & { readonly previous_hash: string } {
  return {
${written.join("\n")}
  };
}

export function receiptOf(members: ReceiptMembers): Receipt {
  return {
${read.join("\n")}
  };
}
`;
}

function writeText({ kind, optional, usual }: FieldData, value: string): string {
  if (kind === "time") return optional ? `${value} === null ? undefined : timeOf(${value})` : `timeOf(${value})`;
  if (!optional) return value;
  return usual === null ? `${value} ?? undefined` : `${value} || undefined`;
}

function readText({ kind, optional, usual }: FieldData, value: string): string {
  if (kind === "time") return optional ? `${value} === undefined ? null : readTime(${value})` : `readTime(${value})`;
  return optional ? `${value} ?? ${JSON.stringify(usual)}` : value;
}
