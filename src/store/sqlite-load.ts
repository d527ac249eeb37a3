import type { DatabaseSync } from "node:sqlite";
import type { RowColumns } from "./sqlite-calls.ts";

/** Measured: between 1,000 and 4,000 it makes no difference; smaller ones leave the loop sooner. */
const rowsPerChunk = 1_000;

/** The next live rows after a key. No cursor stays open in between, so the caller may take its time. */
export function prepareLoad(db: DatabaseSync): (after: number) => RowColumns {
  const rows = db.prepare("SELECT n, kind, body FROM live WHERE n > ? ORDER BY n LIMIT ?");
  rows.setReturnArrays(true);
  return (after) => {
    const n: number[] = [];
    const kind: string[] = [];
    const body: string[] = [];
    // With setReturnArrays a row is a list, which the types of Node do not know.
    for (const row of rows.all(after, rowsPerChunk) as unknown as [number, string, string][]) {
      n.push(row[0]);
      kind.push(row[1]);
      body.push(row[2]);
    }
    return { n, kind, body };
  };
}
