import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../schema/limits.ts";
import {
  type CellFrame,
  cellLinkLimits,
  linkFrameText,
  linkReason,
  readCellFrame,
  readServerFrame,
  type ServerFrame,
} from "./cell-link.ts";

const inventory = [
  { resource: "GPU:/a", driver: "http", capacity: 4, hardware: ["a100"], ready: true, fault: null, fenced: null },
];
const whose = { tenant: "t", id: "l", resource: "GPU:/a", predicate: "MUTATES", holder: "a" } as const;
const lease = { ...whose, generation: 1, fence: 7, units: 1, expires_at: 5 };
const keys = [{ id: "k", key: "AAAA", retires_at: null }];

const fromCell: readonly CellFrame[] = [
  {
    type: "hello",
    cell: "c1",
    session: "s",
    version: "0.1.0",
    inventory,
    bindings: [{ lease_id: "l", generation: 1, fence: 7, ended_as: null }],
  },
  { type: "heartbeat", seq: 1, inventory: null },
  { type: "heartbeat", seq: 2, inventory },
  { type: "done", seq: 1, ok: true },
  { type: "done", seq: 1, ok: true, coordinate: "http://x", token: "lht1.x" },
  { type: "done", seq: 1, ok: true, clean: false, detail: "one process is left" },
  { type: "done", seq: 1, ok: false, code: "bind_failed", detail: "no" },
  { type: "ended", seq: 3, lease_id: "l", generation: 1, code: "lease_expired", failure: null },
  { type: "leaving", reason: "shut down" },
];

const fromServer: readonly ServerFrame[] = [
  { type: "welcome", now: 1, tenant: "t", keys, heartbeat_ms: 5_000, alive_ms: 15_000, refused: [] },
  { type: "do", seq: 1, op: "bind", lease },
  { type: "do", seq: 1, op: "update", lease },
  { type: "do", seq: 1, op: "teardown", lease_id: "l", code: "lease_released" },
  { type: "do", seq: 1, op: "reset", resource: "GPU:/a" },
  { type: "do", seq: 1, op: "probe", resource: "GPU:/a" },
  { type: "beat", seq: 1, now: 2 },
  { type: "noted", seq: 1, now: 2 },
  { type: "keys", keys },
  { type: "refused", code: "cell_taken", message: "It is another's." },
];

test("every frame is read as it was written, by the side that it is for and by no other", () => {
  for (const frame of fromCell) {
    assert.deepEqual(readCellFrame(linkFrameText(frame)), { ok: true, frame });
    assert.equal(readServerFrame(linkFrameText(frame)).ok, false);
  }
  for (const frame of fromServer) {
    assert.deepEqual(readServerFrame(linkFrameText(frame)), { ok: true, frame });
    assert.equal(readCellFrame(linkFrameText(frame)).ok, false);
  }
});

test("an unknown or malformed frame is refused with a sentence, and never throws", () => {
  const bad = [
    "",
    "x",
    "null",
    "[]",
    "7",
    "{}",
    '{"type":"failed","seq":1,"ok":false,"code":"a","detail":""}',
    '{"type":"__proto__"}',
    '{"type":"toString"}',
    '{"type":["hello"]}',
    '{"type":"heartbeat","seq":-1,"inventory":null}',
    '{"type":"heartbeat","seq":1}',
    '{"type":"heartbeat","seq":1,"inventory":null,"more":1}',
    '{"type":"done","seq":1}',
    '{"type":"done","seq":1,"ok":"true"}',
    '{"type":"done","seq":1,"ok":false}',
    '{"type":"ended","seq":1,"lease_id":"l","generation":1,"code":"gone","failure":null}',
    '{"type":"bind","seq":1,"lease":{}}',
    '{"type":"do","op":"welcome"}',
  ];
  for (const frame of bad) {
    for (const read of [readCellFrame(frame), readServerFrame(frame)]) {
      assert(!read.ok, frame);
      assert.match(read.detail, /\.$/);
    }
  }
});

test("an inventory has a limit, and so has what one entry may say", () => {
  const hello = { type: "hello", cell: "c", session: "s", version: null, bindings: [] };
  const many = Array.from({ length: cellLinkLimits.inventoryMax + 1 }, () => inventory[0]);
  assert.equal(readCellFrame(JSON.stringify({ ...hello, inventory: many })).ok, false);
  const long = [{ ...inventory[0], fault: "x".repeat(limits.reasonLengthMax + 1) }];
  assert.equal(readCellFrame(JSON.stringify({ ...hello, inventory: long })).ok, false);
});

test("a reason of any length and making can be sent", () => {
  for (const reason of ["", "short", "x".repeat(100_000), "\0".repeat(2_000), "🙂".repeat(3_000), "\ud800"]) {
    const frame: CellFrame = { type: "leaving", reason: linkReason(reason) };
    assert.equal(readCellFrame(linkFrameText(frame)).ok, true, reason.slice(0, 10));
  }
});
