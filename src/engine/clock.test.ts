import assert from "node:assert/strict";
import { test } from "node:test";
import { type BootTime, describeWallOffset, resumeTime, startClock, systemTime, wallOffsetMsMax } from "./clock.ts";

const hourMs = 3_600_000;

function sources(wall: number, bootId: string | null = "boot-1") {
  const now = { wall, monotonic: 5_000.4, boot: 90_000.5 };
  const boot = { id: bootId, monotonic: () => now.boot };
  return { now, sources: { wall: () => now.wall, monotonic: () => now.monotonic, boot } };
}

test("L7: without a known boot the time is the wall clock, and the last stored time if that is later", () => {
  assert.equal(resumeTime(0, null, sources(1_000_000).sources).now, 1_000_000);
  assert.equal(resumeTime(2_000_000, null, sources(1_000_000).sources).now, 2_000_000);
  const other: BootTime = { id: "boot-0", zeroAt: 7 };
  assert.equal(resumeTime(500_000, other, sources(1_000_000).sources).now, 1_000_000);
  assert.equal(resumeTime(0, null, sources(1_000_000, null).sources).boot, null);
});

test("L7: within a run it advances by the monotonic clock, whatever the wall clock does", () => {
  const { now, sources: time } = sources(1_000_000);
  const clock = startClock(1_000_000, time);
  now.wall -= hourMs;
  now.monotonic += 1_500.9;
  assert.equal(clock.now(), 1_001_500);
  now.wall += 2 * hourMs;
  assert.equal(clock.now(), 1_001_500);
});

test("L7: within one boot the wall clock decides nothing at a restart; down time and idle time count", () => {
  const { now, sources: time } = sources(10_000_000);
  const first = resumeTime(0, null, time);
  for (const step of [0, hourMs, -hourMs, -30_000]) {
    now.wall = 10_000_000 + step;
    now.boot = 90_000.5 + 57_000;
    const { now: resumed, isSameBoot, boot } = resumeTime(10_001_000, first.boot, time);
    assert.deepEqual([resumed, isSameBoot, boot], [10_057_000, true, first.boot], `the wall clock off by ${step}`);
  }
});

test("L7: a boot clock that has not reached the stored time is not believed, and time does not run backwards", () => {
  const { now, sources: time } = sources(10_000_000);
  const { boot } = resumeTime(0, null, time);
  now.boot = 10;
  const resumed = resumeTime(10_500_000, boot, time);
  assert.deepEqual([resumed.now, resumed.isSameBoot], [10_500_000, false]);
});

test("L7: a wall clock that is far off is reported, ahead and behind, in this boot and another", () => {
  const off = (isSameBoot: boolean, wallAheadMs: number) =>
    describeWallOffset({ now: 1, boot: null, isSameBoot, wallAheadMs });
  assert.match(off(false, -wallOffsetMsMax - 1) ?? "", /behind the stored time/);
  assert.match(off(false, wallOffsetMsMax + 1) ?? "", /ahead of the stored time/);
  assert.match(off(true, hourMs) ?? "", /3600 s ahead of the service's time/);
  assert.match(off(true, -hourMs) ?? "", /3600 s behind the service's time/);
  for (const isSame of [true, false]) assert.equal(off(isSame, wallOffsetMsMax), null);
  assert.equal(resumeTime(0, null, sources(5).sources).wallAheadMs, 0, "a first start has nothing to compare with");
});

test("L7: on Linux the machine names its boot, and its clock is the same for all processes", {
  skip: process.platform !== "linux",
}, () => {
  assert.match(systemTime.boot?.id ?? "", /^[0-9a-f-]{36}$/);
  assert.ok((systemTime.boot?.monotonic() ?? 0) > performance.now());
});
