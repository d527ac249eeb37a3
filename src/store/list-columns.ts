/**
 * Rows whose bodies are lists, parsed and turned into columns. This runs in SQLite's thread, because parsing is a third
 * of a restart's cost, and the engine's thread is busy with the result.
 */
import type { ListColumns } from "./store.ts";

/** How columns cross threads: in a column with few distinct texts, each text crosses once. */
export interface PackedColumns {
  readonly n: readonly number[];
  readonly columns: readonly PackedColumn[];
}
type PackedColumn = readonly unknown[] | { readonly values: readonly unknown[]; readonly indexes: Uint32Array };

/** Lists may have different lengths: missing items are undefined. */
export function toColumns(n: readonly number[], lists: readonly (readonly unknown[])[]): ListColumns {
  const width = lists.reduce((widest, { length }) => Math.max(widest, length), 0);
  const columns: unknown[][] = [];
  for (let place = 0; place < width; place++) {
    const column: unknown[] = [];
    for (const list of lists) column.push(list[place]);
    columns.push(column);
  }
  return { n, columns };
}

/** `repeating` are the indexes of the columns with few distinct values. */
export function pack({ n, columns }: ListColumns, repeating: readonly number[]): PackedColumns {
  return { n, columns: columns.map((column, place) => (repeating.includes(place) ? packColumn(column) : column)) };
}

function packColumn(column: readonly unknown[]): PackedColumn {
  const known = new Map<unknown, number>();
  const indexes = new Uint32Array(column.length);
  for (let row = 0; row < column.length; row++) {
    const value = column[row];
    let index = known.get(value);
    if (index === undefined) {
      index = known.size;
      known.set(value, index);
    }
    indexes[row] = index;
  }
  return { values: [...known.keys()], indexes };
}

export function unpack({ n, columns }: PackedColumns): ListColumns {
  return { n, columns: columns.map((column) => ("indexes" in column ? unpackColumn(column) : column)) };
}

function unpackColumn({ values, indexes }: Exclude<PackedColumn, readonly unknown[]>): readonly unknown[] {
  const column: unknown[] = [];
  for (const index of indexes) column.push(values[index]);
  return column;
}
