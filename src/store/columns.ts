import type { SQLOutputValue } from "node:sqlite";
import { StoreFault } from "./faults.ts";

export type Row = Readonly<Record<string, SQLOutputValue>>;

export function textOf(row: Row | undefined, column: string): string {
  const value = row?.[column];
  if (typeof value !== "string") throw new StoreFault(`column ${column} holds ${typeof value}, not text`);
  return value;
}

export function numberOf(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value !== "number") throw new StoreFault(`column ${column} holds ${typeof value}, not a number`);
  return value;
}
