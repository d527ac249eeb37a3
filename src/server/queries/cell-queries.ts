/** The cells of a tenant, with what they host and how much of it is in use. */
import type { Engine } from "../../engine/engine.ts";
import type { State } from "../../kernel/kernel.ts";
import { type CellEntry, each, findTenantFor, type ResourceEntry } from "../../kernel/views.ts";
import type { CellView, QueryOf } from "../../protocol/answers/queries.ts";
import type { CellConnections } from "../cells/connections.ts";
import type { QueryResult } from "./lease-queries.ts";
import { cursorFor, PageBuilder, readCursor } from "./paging.ts";
import { scan } from "./scan.ts";

export async function listCells(
  engine: Engine,
  connections: CellConnections,
  query: QueryOf<"list_cells">,
): Promise<QueryResult> {
  const after = readCursor("cells", query.cursor);
  let page = new PageBuilder<CellView>(query.limit, after);
  let hosted = new Map<string, ResourceEntry[]>();
  const begin = (state: State) => {
    page = new PageBuilder<CellView>(query.limit, after);
    const tenant = findTenantFor(state, query);
    if ("code" in tenant) return tenant;
    hosted = byCell(tenant.resources.values());
    return tenant.cells.values();
  };
  const { refusal, now } = await scan<CellEntry>(engine, begin, ({ record }) => {
    const isConnected = connections.isConnected(record.tenant, record.id);
    const resources = (hosted.get(record.id) ?? []).map((entry) => ({
      resource: entry.record,
      leases: leasesOn(entry),
    }));
    page.offer(record.id, { cell: record, isConnected, resources });
  });
  if (refusal !== null) return { reply: refusal, now };
  const { items, lastKey } = page.build();
  const nextCursor = lastKey === null ? null : cursorFor("cells", lastKey);
  return { reply: { type: "cell_page", cells: items, nextCursor }, now };
}

/** All resources are looked at once, and not once for each cell. */
function byCell(resources: Iterable<ResourceEntry>): Map<string, ResourceEntry[]> {
  const hosted = new Map<string, ResourceEntry[]>();
  for (const entry of resources) {
    const { cell } = entry.record;
    if (cell === null) continue;
    const known = hosted.get(cell);
    if (known === undefined) hosted.set(cell, [entry]);
    else known.push(entry);
  }
  for (const entries of hosted.values()) entries.sort((a, b) => (a.record.name < b.record.name ? -1 : 1));
  return hosted;
}

/** Of its very name: a lease on a pattern over it is not bound. */
export function leasesOn({ node }: ResourceEntry): number {
  let count = 0;
  for (const head of [node.shared, node.providing, node.exclusive]) {
    each(head, () => {
      count++;
    });
  }
  return count;
}
