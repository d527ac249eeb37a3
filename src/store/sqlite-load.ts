import type { DatabaseSync } from "node:sqlite";
import { type PackedColumns, pack, toColumns } from "./list-columns.ts";
import type { Handlers, RowColumns } from "./sqlite-calls.ts";

/** Measured: between 1,000 and 4,000 it makes no difference; smaller chunks block the loop for less time. */
const rowsPerChunk = 1_000;

/** The next live rows after a key. No cursor stays open in between, so the caller may take its time. */
export function prepareLoad(db: DatabaseSync): Handlers<"load" | "loadLists"> {
  const others = db.prepare("SELECT n, kind, body FROM live WHERE n > ? AND kind <> ? ORDER BY n LIMIT ?");
  others.setReturnArrays(true);
  const lists = db.prepare("SELECT n, body FROM live WHERE n > ? AND kind = ? ORDER BY n LIMIT ?");
  lists.setReturnArrays(true);
  return {
    load: (after, except): RowColumns => {
      const n: number[] = [];
      const kind: string[] = [];
      const body: string[] = [];
      // With setReturnArrays a row is a list, which Node's types do not express.
      for (const row of others.all(after, except, rowsPerChunk) as unknown as [number, string, string][]) {
        n.push(row[0]);
        kind.push(row[1]);
        body.push(row[2]);
      }
      return { n, kind, body };
    },
    loadLists: (after, { kind, repeating }): PackedColumns => {
      const n: number[] = [];
      const body: string[] = [];
      for (const row of lists.all(after, kind, rowsPerChunk) as unknown as [number, string][]) {
        n.push(row[0]);
        body.push(row[1]);
      }
      return pack(toColumns(n, JSON.parse(`[${body.join()}]`) as unknown[][]), repeating);
    },
  };
}
