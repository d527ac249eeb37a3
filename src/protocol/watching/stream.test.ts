import assert from "node:assert/strict";
import { test } from "node:test";
import { answerJson } from "../answers/answer.ts";
import { limits } from "../schema/limits.ts";
import { eventFrameText, joinFrames, readFrame, replyFrameText } from "./stream.ts";

test("a frame holds one command or many, each with its own id", () => {
  const heartbeat = { id: 1, op: "heartbeat", input: { lease_id: "lse_1" } };
  assert.deepEqual(readFrame(heartbeat), [{ type: "command", ...heartbeat }]);
  const ids = readFrame([heartbeat, { id: "b", op: "healthz" }]).map(({ id }) => id);
  assert.deepEqual(ids, [1, "b"]);
});

test("a bad command costs its own answer, not that of its neighbours", () => {
  const read = readFrame([
    { id: 1, op: "heartbeat" },
    { id: 2 },
    7,
    { op: "x" },
    { id: 3, op: "x", extra: 1 },
    { id: 4, op: "x" },
  ]);
  assert.deepEqual(
    read.map((one) => [one.id, one.type === "fault" ? one.fault.field : "ok"]),
    [
      [1, "ok"],
      [2, "op"],
      [null, ""],
      [null, "id"],
      [3, "extra"],
      [4, "ok"],
    ],
  );
});

test("frames are bounded", () => {
  const many = Array.from({ length: limits.frameCommandsMax + 1 }, (_, id) => ({ id, op: "heartbeat" }));
  assert.equal(readFrame(many).length, 1);
  assert.equal(readFrame(many)[0]?.type, "fault");
  assert.equal(readFrame([])[0]?.type, "fault");
  for (const id of ["", "x".repeat(65), 1.5, null, {}, 2 ** 53])
    assert.equal(readFrame({ id, op: "x" })[0]?.type, "fault", String(id));
});

test("replies and events are joined as text into one frame of JSON", () => {
  const texts = [
    replyFrameText(1, answerJson(200, { ok: true })),
    replyFrameText('q"', answerJson(410, {})),
    eventFrameText(9, '{"type":"x"}'),
  ];
  assert.deepEqual(JSON.parse(joinFrames(texts)), [
    { id: 1, status: 200, body: { ok: true } },
    { id: 'q"', status: 410, body: {} },
    { seq: 9, event: { type: "x" } },
  ]);
  assert.deepEqual(JSON.parse(joinFrames(texts.slice(2))), { seq: 9, event: { type: "x" } });
  assert.deepEqual(JSON.parse(replyFrameText(null, answerJson(400, {}))), { id: null, status: 400, body: {} });
});
