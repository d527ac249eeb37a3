/** Cells: the processes that host resources and enforce leases on them (G6, G12). */

import * as shapes from "../leases/shapes.ts";
import { above, hosting, watching } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { cellLinkPath } from "./cell-link.ts";

const { command, edge, query } = operationsOf("Resources");

export const listCells = query({
  name: "list_cells",
  path: "/v1/cells",
  fields: { ...paging },
  roles: watching,
  summary: "Lists cells",
  description: "The processes that host resources: whether they are ready, since when, and what they host.",
  example: { limit: 20 },
  replies: [ok(shapes.page("cells", shapes.cellView), "One page.")],
});

export const readmitCell = command({
  name: "readmit_cell",
  path: "/v1/cells/{cell}/readmit",
  roles: above,
  summary: "Undoes the withdrawal of a cell",
  description: "Its resources can be leased again, as far as the cell is ready (G12).",
  example: { cell: "lab-1" },
  replies: [ok(shapes.cell, "The cell.")],
  errors: ["cell_unknown"],
});

export const connectCell = edge({
  name: "connect_cell",
  path: cellLinkPath,
  roles: hosting,
  summary: "Connects a cell (WebSocket)",
  description:
    "Opened by `leasehold cell`, with a key of the role `cell`. Frames are JSON; the cell says hello first, with what it " +
    "hosts and believes to be bound, and then gets commands to bind and tear down. See docs/cells.md.",
  replies: [ok(shapes.nothingMore, "The connection is upgraded.", 101)],
});
