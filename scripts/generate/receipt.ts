/** The text of a receipt that is hashed and stored, from its description: src/ledger/receipt-members.gen.ts. */
import { type FieldData, wireName } from "../../src/kernel/contract/field.ts";
import { receipt } from "../../src/kernel/contract/task-records.ts";

export function receiptText(): string {
  const fields = Object.entries(receipt as Readonly<Record<string, FieldData>>);
  // What every receipt has up to the first that only some have; then what this one has, in the order of all.
  const some = fields.findIndex(([, field]) => field.optional);
  const first = fields.slice(0, some).flatMap(([key, field]) => {
    const line = `    ${wireName(key, field)}: ${writeText(field, `receipt.${key}`)},`;
    // The hash before stands second.
    return key === "sequence" ? [line, "    previous_hash: previousHash,"] : [line];
  });
  const others = fields.slice(some).map(([key, field]) => {
    const value = `receipt.${key}`;
    const isThere = field.usual === null ? `${value} !== null` : value;
    const write = `members.${wireName(key, field)} = ${writeText(field, value)};`;
    return field.optional ? `  if (${isThere}) ${write}` : `  ${write}`;
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

type Written = { -readonly [Name in keyof ReceiptMembers]?: ReceiptMembers[Name] };

/** The members in their order. To leave out what is undefined takes a fifth of the time that the text takes. */
export function receiptMembers(receipt: Receipt, previousHash: string): object {
  const members: Written & { readonly previous_hash: string } = {
${first.join("\n")}
  };
${others.join("\n")}
  return members;
}

export function receiptOf(members: ReceiptMembers): Receipt {
  return {
${read.join("\n")}
  };
}
`;
}

function writeText({ kind }: FieldData, value: string): string {
  return kind === "time" ? `timeOf(${value})` : value;
}

function readText({ kind, optional, usual }: FieldData, value: string): string {
  if (kind === "time") return optional ? `${value} === undefined ? null : readTime(${value})` : `readTime(${value})`;
  return optional ? `${value} ?? ${JSON.stringify(usual)}` : value;
}
