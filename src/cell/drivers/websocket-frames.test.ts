import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { closeFrame, FrameBorders } from "./websocket-frames.ts";

/** As a server sends it. */
function frame(opcode: number, length: number): Buffer {
  const size =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 0xff]
        : [127, 0, 0, 0, 0, 0, ...big(length)];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...size]), Buffer.alloc(length, 0x88)]);
}

function big(length: number): readonly number[] {
  return [(length >> 16) & 0xff, (length >> 8) & 0xff, length & 0xff];
}

const length = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constantFrom(125, 126, 65_535, 65_536, 70_000));

test("a close frame is put exactly where one frame has ended and no other has begun, however the bytes come", () => {
  fc.assert(
    fc.property(fc.array(length, { maxLength: 4 }), fc.array(fc.integer({ min: 1, max: 5_000 })), (lengths, cuts) => {
      const frames = lengths.map((one) => frame(2, one));
      const ends = new Set([0]);
      for (const [at] of frames.entries()) ends.add(Buffer.concat(frames.slice(0, at + 1)).length);
      const all = Buffer.concat(frames);
      const borders = new FrameBorders();
      let at = 0;
      for (const size of [...cuts, all.length]) {
        borders.pass(all.subarray(at, at + size));
        at = Math.min(at + size, all.length);
        assert.equal(borders.canClose, ends.has(at));
      }
    }),
    { numRuns: 200 },
  );
});

test("nothing follows the close frame of the service", () => {
  const borders = new FrameBorders();
  borders.pass(frame(8, 2));
  assert.equal(borders.canClose, false);
});

test("G9: the close frame has the status above 4000, and the code as its reason", () => {
  const sent = closeFrame({ code: "resource_fenced", detail: "" });
  assert.deepEqual([sent[0], sent[1], sent.readUInt16BE(2)], [0x88, 17, 4_423]);
  assert.equal(sent.subarray(4).toString(), "resource_fenced");
});
