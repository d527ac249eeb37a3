/** G8, G10: what is bound is renewed, its tokens are swapped, and its end is reported, however the answers come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hold } from "../../src/sdk/hold.ts";
import { type LeaseEndCode, LeaseLost } from "../../src/sdk/lease-lost.ts";
import { inspectToken } from "../../src/sdk/tokens.ts";
import { pause, until } from "./harness.ts";
import { refusal, type Scripted, scripted } from "./scripted-control.ts";

const gpu = "GPU:/lab/a";
/** Long enough for a busy machine: a quarter of it is left for a renewal. */
const ttlMs = 4_000;
const narrowMargin = { marginMs: 25 };

function lossOf({ signal }: Hold): Promise<LeaseLost> {
  return new Promise((resolve) => {
    const tell = (): void => resolve(signal.reason as LeaseLost);
    if (signal.aborted) tell();
    else signal.addEventListener("abort", tell, { once: true });
  });
}

function renewed(control: Scripted, times: number): Promise<true> {
  return until(() => (control.renewals >= times ? true : null), `it was renewed ${times} times`);
}

test("a bound lease is renewed and never extended, and each request carries the current token", async (t) => {
  const control = await scripted(t, { ttlMs });
  // The old token is stale before the reply arrives: the user must not notice this gap (G8).
  control.onRenew = async (grant) => {
    const body = grant();
    await pause(40);
    return { status: 200, body };
  };
  const hold = await control.client.hold(gpu, narrowMargin);
  const { lease } = hold;
  const told: string[] = [];
  lease.onToken((token) => told.push(token));
  assert.equal(inspectToken(lease.token).generation, 1);
  assert.equal(lease.coordinate?.endsWith("/gateway"), true);
  const statuses: number[] = [];
  while (control.renewals < 3) {
    const response = await lease.fetch("work", { method: "POST", body: "x" });
    statuses.push(response.status);
    await response.arrayBuffer();
  }
  assert.deepEqual([...new Set(statuses)], [200]);
  assert.equal(hold.leases[0]?.generation, lease.generation);
  assert.deepEqual(
    told.map((token) => inspectToken(token).generation),
    told.map((_, index) => index + 2),
  );
  await hold.release();
  assert.ok(!control.asked.includes("heartbeat"));
  assert.equal(control.asked.at(-1), "release");
  assert.throws(() => lease.token, LeaseLost);
});

test("clocks that differ by an hour change nothing, and a token is narrowed by the server's clock", async (t) => {
  const holdWith = async (clockAheadMs: number): Promise<void> => {
    const control = await scripted(t, { ttlMs, clockAheadMs });
    const hold = await control.client.hold(gpu, narrowMargin);
    await renewed(control, 1);
    const { usableUntil } = inspectToken(hold.lease.narrow({ expiresInMs: 50, operations: ["write", "read"] }));
    assert.ok(Math.abs(usableUntil - control.serverNow()) < 60_000);
    await hold.release();
  };
  await Promise.all([3_600_000, -3_600_000].map(holdWith));
});

test("a short absence of the cell loses no lease, whether or not it was re-issued meanwhile", async (t) => {
  const holdThrough = async (isCommitted: boolean): Promise<void> => {
    const control = await scripted(t, { ttlMs: 10_000 });
    control.onRenew = (grant) => {
      if (control.renewals > 2) return { status: 200, body: grant() };
      // A renewal that is committed but not confirmed by the cell does not extend the lease.
      if (isCommitted) grant();
      return refusal(423, "paused", { reason: "cell_not_ready" });
    };
    const hold = await control.client.hold(gpu, narrowMargin);
    await until(
      () => (hold.lease.generation === control.lease.generation && control.renewals > 2 ? true : null),
      "renewed",
    );
    assert.equal(hold.lease.lost, null);
    await hold.release();
    assert.ok(!control.asked.includes("heartbeat"));
  };
  await Promise.all([false, true].map(holdThrough));
});

test("when the cell stays away, the work stops before the lease can have ended there", async (t) => {
  const control = await scripted(t, { ttlMs: 6_000 });
  const cellsEnd = { at: 0 };
  control.onRenew = (grant) => {
    cellsEnd.at ||= control.lease.expiresAt;
    grant();
    return refusal(423, "paused", { reason: "cell_not_ready" });
  };
  const hold = await control.client.hold(gpu);
  const lost = await lossOf(hold);
  assert.ok(control.serverNow() < cellsEnd.at);
  assert.deepEqual([lost.end, lost.reason, lost.said], ["lease_expired", "cell_not_ready", "cell_not_ready"]);
  assert.throws(() => hold.lease.token, LeaseLost);
});

test("a renewal whose reply is lost, or that another client made, is picked up with its current token", async (t) => {
  const control = await scripted(t, { ttlMs: 8_000 });
  control.onRenew = async (grant) => {
    const body = grant();
    if (control.renewals === 1) await pause(5_000); // The client gives up long before.
    return { status: 200, body };
  };
  const hold = await control.client.hold(gpu, { ...narrowMargin, watch: false });
  await until(() => (hold.lease.generation === 2 ? true : null), "the lost one is taken up");
  control.lease.generation++;
  control.lease.expiresAt = control.serverNow() + 8_000;
  const response = await hold.lease.fetch("");
  assert.equal(response.status, 200);
  assert.equal(hold.lease.generation, 3);
  await hold.release();
});

test("a renewal that is answered after the lease's end hands out no token", async (t) => {
  const control = await scripted(t, { ttlMs: 3_000 });
  const late: (() => void)[] = [];
  control.onRenew = (grant) => new Promise((resolve) => late.push(() => resolve({ status: 200, body: grant() })));
  const hold = await control.client.hold(gpu);
  const told: string[] = [];
  hold.lease.onToken((token) => told.push(token));
  const lost = await lossOf(hold);
  assert.deepEqual([lost.end, lost.reason], ["lease_expired", "no_contact"]);
  for (const answer of late) answer();
  await pause(50);
  assert.deepEqual(told, []);
  assert.throws(
    () => hold.lease.token,
    (error) => error === lost,
  );
  await assert.rejects(hold.lease.fetch(""), (error) => error === lost);
});

test("a program that was stopped past the lease's end gets no token, even before any timer has run", async (t) => {
  const control = await scripted(t, { ttlMs: 1_500 });
  const { lease } = await control.client.hold(gpu);
  const end = performance.now() + 2_000;
  while (performance.now() < end);
  assert.throws(
    () => lease.token,
    (error) => error instanceof LeaseLost && error.reason === "overslept",
  );
  assert.equal(lease.lost?.end, "lease_expired");
});

test("every end has a code of a closed list and a reason, and arrives at once on the event stream", async (t) => {
  const told: readonly (readonly [type: string, reason: string | undefined, end: LeaseEndCode])[] = [
    ["lease.revoked", "maintenance", "lease_revoked"],
    ["lease.revoked", "resource_fenced", "resource_fenced"],
    ["lease.closing", "resource_fenced", "resource_fenced"],
    ["lease.expired", undefined, "lease_expired"],
    ["lease.released", undefined, "lease_released"],
    ["lease.transferred", "next", "stale_token"],
    ["lease.closing", "maintenance", "lease_revoked"],
  ];
  for (const [type, reason, end] of told) {
    const control = await scripted(t, { ttlMs: 60_000 });
    const hold = await control.client.hold(gpu);
    const ends: LeaseLost[] = [];
    hold.lease.onEnd((lost) => ends.push(lost));
    await until(
      () => (control.asked.includes("look") ? true : null),
      "the stream is open, and what was before it known",
    );
    if (type === "lease.closing") control.lease.state = "CLOSING";
    if (type === "lease.transferred") control.lease.agentId = "next";
    control.tell(type, reason);
    const lost = await lossOf(hold);
    assert.equal(lost.end, end, `${type} ${reason}`);
    assert.deepEqual(ends, [lost]);
    if (end !== "stale_token") assert.equal(lost.said, reason ?? null);
    assert.throws(() => hold.lease.token, LeaseLost);
  }
});

test("without the stream the next renewal reports the end", async (t) => {
  const control = await scripted(t, { ttlMs });
  const hold = await control.client.hold(gpu, { ...narrowMargin, watch: false });
  control.lease.state = "REVOKED";
  const lost = await lossOf(hold);
  assert.deepEqual([lost.end, lost.reason, lost.said], ["lease_revoked", "revoked", "maintenance"]);
});

test("lease errors that a service behind the gateway sends are not believed", async (t) => {
  const control = await scripted(t, { ttlMs: 60_000 });
  control.onUse = () => refusal(410, "lease_expired");
  const hold = await control.client.hold(gpu, { watch: false });
  const response = await hold.lease.fetch("");
  assert.equal(response.status, 410);
  await until(() => (control.asked.includes("look") ? true : null), "the server was asked");
  assert.equal(hold.lease.lost, null);
  await hold.release();
});

test("the token is sent only to the resource's coordinate", async (t) => {
  const control = await scripted(t, { ttlMs: 60_000 });
  const hold = await control.client.hold(gpu);
  await assert.rejects(hold.lease.fetch("http://127.0.0.1:1/"), TypeError);
  await assert.rejects(hold.lease.fetch("//example.com/"), TypeError);
  await hold.release();
});
