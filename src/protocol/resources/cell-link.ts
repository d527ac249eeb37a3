/**
 * The frames between a cell and the control plane, one JSON object each, over a WebSocket that the cell opens
 * (`GET /v1/cells/connect`). The cell sends `hello` with what it believes, gets `welcome`, and then `do` commands;
 * it answers each with `done`, and reports by itself what it has `ended`. Both sides decode with the same schemas.
 */
import { predicates } from "../../kernel/contract/predicates.ts";
import { type CellEndCode, cellBinding, cellEndCodes, cellResource } from "../../kernel/contract/records.ts";
import { checkOf } from "../schema/check.ts";
import type { Fault } from "../schema/explain.ts";
import { frame } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import {
  always,
  choice,
  flag,
  integer,
  list,
  nullable,
  record,
  type Static,
  sometimes,
  type TSchema,
  text,
} from "../schema/schema.ts";

export const cellLinkPath = "/v1/cells/connect";

export const cellLinkLimits = {
  /** A hello with a full inventory and all its bindings. */
  frameBytesMax: 4 * 2 ** 20,
  /** From the upgrade to the hello. */
  helloMsMax: 10_000,
  inventoryMax: limits.cellInventoryMax,
  bindingsMax: limits.cellBindingsMax,
  hardwareMax: limits.cellHardwareMax,
  coordinateLengthMax: 1_024,
  keysMax: 64,
} as const;

/** Why a link was closed, beside the protocol's own codes. */
export const cellCloseCodes = {
  shuttingDown: 1012,
  /** The key may not act as this cell. Nothing helps but another key. */
  notAllowed: 4001,
  /** The name is enrolled with another key. */
  taken: 4002,
  badFrame: 4003,
  /** A newer session of the same cell has connected. */
  replaced: 4004,
} as const;

export { type CellEndCode, cellEndCodes };

const id = text({ minLength: 1, maxLength: limits.idLengthMax });
const name = text({ minLength: 1, maxLength: limits.resourceLengthMax });
const reason = text({ maxLength: limits.reasonLengthMax });
const label = text({ minLength: 1, maxLength: limits.labelLengthMax });
const seq = integer();
const endCode = choice(cellEndCodes);

export const cellInventoryEntry = frame(cellResource);
export type CellInventoryEntry = Static<typeof cellInventoryEntry>;

/** What the cell believes is bound; `ended_as` of one that it is still taking down, or could not. */
export const cellLinkBinding = frame(cellBinding);
export type CellLinkBinding = Static<typeof cellLinkBinding>;

const inventory = list(cellInventoryEntry, { maxItems: cellLinkLimits.inventoryMax });

export const cellLinkLease = record({
  tenant: id,
  id,
  resource: name,
  /** What the holder may do with it (G4). */
  predicate: choice(predicates),
  /** Whose it is: with another holder, what the one before has open ends (L15). */
  holder: id,
  generation: integer(),
  fence: integer(),
  units: integer(),
  /** By the control plane's clock, in ms since 1970 (L7). */
  expires_at: integer(),
  /** Of a bind: how long the lease lasts once it is granted, which is not before the cell has answered. */
  ttl_ms: sometimes(integer()),
});
export type CellLinkLease = Static<typeof cellLinkLease>;

/** A cell's own key, derived from a master key; `retires_at` null for the present one. */
export const cellLinkKey = record({
  id,
  key: text({ minLength: 1, maxLength: 128 }),
  retires_at: nullable(integer()),
});
export type CellLinkKey = Static<typeof cellLinkKey>;
const keys = list(cellLinkKey, { minItems: 1, maxItems: cellLinkLimits.keysMax });

const type = <const T extends string>(value: T) => choice([value]);

/** By what `type` says, and for answers by `ok`. */
const fromCell = {
  hello: record({
    type: type("hello"),
    cell: id,
    session: id,
    version: nullable(text({ maxLength: limits.labelLengthMax })),
    inventory,
    bindings: list(cellLinkBinding, { maxItems: cellLinkLimits.bindingsMax }),
  }),
  heartbeat: record({ type: type("heartbeat"), seq, inventory: nullable(inventory) }),
  done: record({
    type: type("done"),
    seq,
    ok: always(true),
    coordinate: sometimes(text({ maxLength: cellLinkLimits.coordinateLengthMax })),
    token: sometimes(text({ maxLength: limits.tokenLengthMax })),
    /** Of a probe, and of a reset, which probes too. */
    clean: sometimes(flag()),
    detail: sometimes(reason),
  }),
  failed: record({ type: type("done"), seq, ok: always(false), code: label, detail: reason }),
  ended: record({
    type: type("ended"),
    seq,
    lease_id: id,
    generation: integer(),
    code: endCode,
    /** null: it was torn down; else why that is not sure (G7). */
    failure: nullable(reason),
  }),
  leaving: record({ type: type("leaving"), reason }),
} as const;

export type CellHello = Static<typeof fromCell.hello>;
export type CellHeartbeat = Static<typeof fromCell.heartbeat>;
export type CellDone = Static<typeof fromCell.done> | Static<typeof fromCell.failed>;
export type CellEnded = Static<typeof fromCell.ended>;
export type CellLeaving = Static<typeof fromCell.leaving>;
export type CellFrame = CellHello | CellHeartbeat | CellDone | CellEnded | CellLeaving;

/** By what `type` says, and for commands by `op`. */
const fromServer = {
  welcome: record({
    type: type("welcome"),
    now: integer(),
    tenant: id,
    keys,
    heartbeat_ms: integer({ minimum: 1 }),
    /** After this much silence the control plane treats the cell as gone. */
    alive_ms: integer({ minimum: 1 }),
    /** Parts of the inventory that were not taken. */
    refused: list(record({ resource: name, message: text() })),
  }),
  bind: record({ type: type("do"), seq, op: type("bind"), lease: cellLinkLease }),
  /** The same or the next generation (G8), with its present end, predicate and holder (L15). */
  update: record({ type: type("do"), seq, op: type("update"), lease: cellLinkLease }),
  teardown: record({ type: type("do"), seq, op: type("teardown"), lease_id: id, code: endCode }),
  reset: record({ type: type("do"), seq, op: type("reset"), resource: name }),
  probe: record({ type: type("do"), seq, op: type("probe"), resource: name }),
  beat: record({ type: type("beat"), seq, now: integer() }),
  noted: record({ type: type("noted"), seq, now: integer() }),
  keys: record({ type: type("keys"), keys }),
  refused: record({ type: type("refused"), code: label, message: text() }),
} as const;

export type CellWelcome = Static<typeof fromServer.welcome>;
export type CellDo =
  | Static<typeof fromServer.bind>
  | Static<typeof fromServer.update>
  | Static<typeof fromServer.teardown>
  | Static<typeof fromServer.reset>
  | Static<typeof fromServer.probe>;
export type CellBeat = Static<typeof fromServer.beat>;
export type CellNoted = Static<typeof fromServer.noted>;
export type CellKeysFrame = Static<typeof fromServer.keys>;
export type CellRefused = Static<typeof fromServer.refused>;
export type ServerFrame = CellWelcome | CellDo | CellBeat | CellNoted | CellKeysFrame | CellRefused;

export type LinkRead<T> = { readonly ok: true; readonly frame: T } | ({ readonly ok: false } & Fault);

export function readCellFrame(frameText: string): LinkRead<CellFrame> {
  return read(frameText, ({ type, ok }) => {
    if (type === "done") return ok === false ? fromCell.failed : fromCell.done;
    return typeof type === "string" && type !== "failed" && Object.hasOwn(fromCell, type)
      ? fromCell[type as "hello"]
      : null;
  });
}

export function readServerFrame(frameText: string): LinkRead<ServerFrame> {
  return read(frameText, ({ type, op }) => {
    const key = type === "do" ? op : type;
    if (typeof key !== "string" || !Object.hasOwn(fromServer, key)) return null;
    const isCommand = key === "bind" || key === "update" || key === "teardown" || key === "reset" || key === "probe";
    return isCommand === (type === "do") ? fromServer[key as "bind"] : null;
  });
}

export function linkFrameText(frame: CellFrame | ServerFrame): string {
  return JSON.stringify(frame);
}

/** Reasons come from drivers and their logs, and may be of any length; what is sent is the beginning. */
export function linkReason(reason: string): string {
  const wellFormed = reason.toWellFormed().replaceAll("\0", " ");
  return [...wellFormed.slice(0, 2 * limits.reasonLengthMax)].slice(0, limits.reasonLengthMax).join("").toWellFormed();
}

interface Shape {
  readonly type?: unknown;
  readonly ok?: unknown;
  readonly op?: unknown;
}

function read<T>(frameText: string, schemaOf: (shape: Shape) => TSchema | null): LinkRead<T> {
  let value: unknown;
  try {
    value = JSON.parse(frameText);
  } catch {
    return wrong("", "The frame is not JSON.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return wrong("", "A frame is one object.");
  }
  const schema = schemaOf(value);
  if (schema === null) return wrong("type", "Unknown type of frame.");
  const checked = checkOf(schema)(value);
  return checked.ok ? { ok: true, frame: checked.value as T } : checked;
}

function wrong(field: string, detail: string): { readonly ok: false } & Fault {
  return { ok: false, code: "invalid_request", field, detail };
}
