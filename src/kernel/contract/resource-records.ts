/** Declared resources (C6, G7, G12, G15), and the cells that host some of them (G6). */
import {
  choice,
  flag,
  hidden,
  integer,
  list,
  named,
  optional,
  record,
  text,
  time,
  uncheckedChoice,
  type Values,
} from "./field.ts";
import { limits } from "./limits.ts";

/** Units that were granted, and when they come back. */
export const spentUnits = { at: time(), units: integer() };
export interface SpentUnits extends Values<typeof spentUnits> {}

export const resource = {
  tenant: hidden(text()),
  name: named("resource", text()),
  /** Units, for a counted resource (C6). */
  capacity: optional(integer()),
  /** G15: how long after a grant its units come back; null: when its lease ends. */
  refillMs: optional(integer()),
  /** G15: units that come back with time, in that order. */
  spent: hidden(optional(list(record(spentUnits)), [] as readonly SpentUnits[])),
  /** The cell that hosts it, where it is bound (G6), and what that cell reports of it. */
  cell: optional(text()),
  driver: optional(text()),
  /** Labels of what it runs on, for tokens that are narrowed to them (G4). */
  hardware: optional(list(text()), [] as readonly string[]),
  /** Why its cell cannot serve it now. */
  fault: optional(text()),
  fenced: hidden(flag()),
  fenceReason: named("reason", optional(text())),
  fencedAt: optional(time()),
  withdrawn: hidden(flag()),
  declaredAt: time(),
};
export interface Resource extends Values<typeof resource> {}

/** What a cell reports of one resource that it hosts. */
export const cellResource = {
  resource: text({ min: 1, max: limits.resourceLengthMax }),
  driver: text({ min: 1, max: limits.cellDriverLengthMax }),
  capacity: optional(integer({ min: 1, max: limits.unitsMax })),
  hardware: list(text({ min: 1, max: limits.labelLengthMax }), { max: limits.cellHardwareMax }),
  ready: flag(),
  /** Why it is not ready. */
  fault: optional(text({ max: limits.reasonLengthMax })),
  /** Why the cell has fenced it by itself (G7). */
  fenced: optional(text({ max: limits.reasonLengthMax })),
};
export interface CellResource extends Values<typeof cellResource> {}

/** How a cell ends a lease, as its holder sees it (G9). */
export const cellEndCodes = ["lease_expired", "lease_released", "lease_revoked", "resource_fenced"] as const;
export type CellEndCode = (typeof cellEndCodes)[number];

/** What a cell believes to be bound; `endedAs` of one that it ended by itself. */
export const cellBinding = {
  leaseId: text({ min: 1, max: limits.idLengthMax }),
  generation: integer(),
  fence: integer(),
  endedAs: optional(uncheckedChoice(cellEndCodes)),
};
export interface CellBinding extends Values<typeof cellBinding> {}

export const cellStates = ["READY", "GONE"] as const;

/** A process that hosts resources and enforces the leases on them. */
export const cell = {
  tenant: hidden(text()),
  id: named("cell", text()),
  /** Of the process that enrolled last; empty once it has left. */
  session: hidden(text()),
  /** L13: the key that enrolled it first; null: no key did, and only those above may speak for it. */
  keyId: hidden(optional(text())),
  state: choice(cellStates),
  goneReason: named("reason", optional(text())),
  /** G12: nothing new is leased on its resources. */
  withdrawn: flag(),
  version: optional(text()),
  enrolledAt: time(),
  /** When it last became READY or GONE, or was withdrawn or readmitted. */
  changedAt: named("since", time()),
  /** Without a heartbeat by then, it is GONE. */
  aliveBy: hidden(time()),
};
export interface Cell extends Values<typeof cell> {}
