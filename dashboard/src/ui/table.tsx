/** A table that scrolls sideways where it is wider than its panel. */
import type { ComponentChildren } from "preact";

export function Table({
  head,
  rows,
}: {
  readonly head: readonly string[];
  readonly rows: readonly (readonly ComponentChildren[])[];
}) {
  return (
    <div class="table-box">
      <table>
        <thead>
          <tr>
            {head.map((name, at) => (
              <th key={`${name}${at}`} scope="col">
                {name === "" ? <span class="visually-hidden">Actions</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={String(at)}>
              {row.map((cell, column) => (
                <td key={`${head[column]}`}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
