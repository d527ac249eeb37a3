import assert from "node:assert/strict";
import { once } from "node:events";
import { request as ask, type IncomingMessage } from "node:http";
import { test } from "node:test";
import type { CellLease } from "../binding.ts";
import { Fields } from "../fields.ts";
import {
  eventually,
  failsWith,
  makeCell,
  narrowed,
  newLease,
  renewed,
  type TestCell,
  type TestCellOptions,
} from "../testing/test-cell.ts";
import { MemoryDriver, readMemoryOptions } from "./memory.ts";

const resource = "MEMORY:/lab/a";
/** Over one slice, so that what is done in slices is seen at its borders. */
const bytes = 4 * 2 ** 20 + 100;

function makeMemoryCell(options: TestCellOptions = {}): TestCell {
  return makeCell([{ resource, driver: "memory", options: { bytes } }], options);
}

interface Region {
  readonly lease: CellLease;
  readonly coordinate: string;
  readonly token: string;
  readonly read: (from: number, length: number) => Promise<string>;
  readonly write: (from: number, text: string) => Promise<string>;
}

async function boundTo({ core }: TestCell, ttlMs?: number, change: Partial<CellLease> = {}): Promise<Region> {
  const lease = newLease(resource, ttlMs, change);
  const { coordinate, token } = await core.bind(lease);
  return { lease, coordinate, token, ...callsTo(coordinate, token) };
}

function callsTo(coordinate: string, token: string): Pick<Region, "read" | "write"> {
  const headers = { authorization: `Bearer ${token}` };
  const codeOr = async (response: Response): Promise<string> => {
    const text = await response.text();
    return response.ok ? text : (JSON.parse(text) as { error: string }).error;
  };
  return {
    read: async (from, length) => codeOr(await fetch(`${coordinate}/?offset=${from}&length=${length}`, { headers })),
    write: async (from, text) =>
      codeOr(await fetch(`${coordinate}/?offset=${from}`, { method: "PUT", headers, body: text })),
  };
}

test("G5: memory is read and written by offset, with the token each time, and nothing beyond the region", async () => {
  const { read, write, coordinate } = await boundTo(makeMemoryCell());
  assert.equal(await read(0, 3), "\0\0\0");
  assert.equal(await write(bytes - 3, "end"), "");
  assert.equal(await read(bytes - 4, 4), "\0end");
  assert.equal(await write(bytes - 2, "end"), "range_not_satisfiable");
  assert.equal(await read(bytes - 2, 3), "range_not_satisfiable");
  assert.equal(await read(bytes, 1), "range_not_satisfiable");
  assert.equal(await write(0, "begin"), "");
  assert.equal(await read(0, 6), "begin\0");
  assert.equal((await fetch(`${coordinate}/?offset=0&length=1`)).status, 401);
  const large = "x".repeat(300_000);
  await write(7, large);
  assert.equal(await read(7, large.length), large);
});

test("G6: at the end of the lease memory is zeroed, and the next holder reads zeros", async () => {
  const cell = makeMemoryCell();
  for (const end of ["lease_released", "lease_revoked"] as const) {
    const { lease, read, write } = await boundTo(cell);
    await write(0, "secret");
    await write(bytes - 6, "secret");
    await cell.core.teardown(lease.id, end);
    assert.equal(await read(0, 6), end);
    const next = await boundTo(cell);
    assert.equal(await next.read(0, 6), "\0".repeat(6));
    assert.equal(await next.read(bytes - 6, 6), "\0".repeat(6));
    await cell.core.teardown(next.lease.id);
    assert.equal((await cell.core.probe(resource)).clean, true);
  }
});

test("G11: memory ends by the cell's own clock, and a write under way gets the typed failure", async () => {
  const cell = makeMemoryCell();
  const { coordinate, token, read } = await boundTo(cell, 1_500);
  const headers = { authorization: `Bearer ${token}`, "content-length": "1000" };
  const upload = ask(`${coordinate}/?offset=0`, { method: "PUT", headers });
  upload.on("error", () => {});
  upload.write("begun");
  const [answer] = (await once(upload, "response")) as [IncomingMessage];
  assert.equal(answer.statusCode, 410);
  upload.destroy();
  assert.equal(await read(0, 1), "lease_expired");
  await eventually(() => cell.core.bindings().length === 0);
  const next = await boundTo(cell);
  assert.equal(await next.read(0, 5), "\0".repeat(5));
});

test("G8: memory outlives a renewal; the old token is stale", async () => {
  const cell = makeMemoryCell();
  const { lease, read, write, coordinate } = await boundTo(cell);
  await write(0, "kept");
  const { token } = await cell.core.renew(renewed(lease));
  assert.equal(await read(0, 4), "stale_token");
  assert.equal(await callsTo(coordinate, token).read(0, 4), "kept");
});

test("G4: a lease that only reads cannot write memory; a downgrade keeps what it wrote", async () => {
  const cell = makeMemoryCell();
  const { lease, read, write } = await boundTo(cell);
  await write(0, "shared");
  await cell.core.renew({ ...lease, predicate: "CONSUMES" });
  assert.equal(await write(0, "again!"), "caveat_failed");
  assert.equal(await read(0, 6), "shared");
  const reader = await boundTo(cell, undefined, { predicate: "CONSUMES", holder: "bob" });
  assert.equal(await reader.write(0, "no"), "caveat_failed");
  await cell.core.teardown(lease.id);
  // It is zeroed with the last lease, and not under the others.
  assert.equal(await reader.read(0, 6), "shared");
  await cell.core.teardown(reader.lease.id);
  assert.equal(await (await boundTo(cell)).read(0, 6), "\0".repeat(6));
});

test("G4: a budget of bytes holds for memory in both directions", async () => {
  const { token, coordinate } = await boundTo(makeMemoryCell());
  const { read, write } = callsTo(coordinate, narrowed(token, { type: "bytes", bytesMax: 10 }));
  assert.equal(await write(0, "123456"), "");
  assert.equal(await read(0, 4), "1234");
  assert.equal(await read(0, 1), "caveat_failed");
});

test("G7: memory that was not zeroed is seen, fences the resource, and stays fenced until a reset has zeroed it", async () => {
  let isBroken = true;
  /** The planted fault: it forgets. */
  class ForgetfulDriver extends MemoryDriver {
    protected override wipe(signal: AbortSignal): Promise<void> {
      return isBroken ? Promise.resolve() : super.wipe(signal);
    }
  }
  const options = readMemoryOptions(new Fields({ bytes }, "options"));
  const cell = makeMemoryCell({ plant: (place) => new ForgetfulDriver(options, place) });
  const { lease, write } = await boundTo(cell);
  await write(bytes - 1, "x");
  await failsWith("teardown_failed", cell.core.teardown(lease.id));
  assert.match(cell.core.inventory()[0]?.fenced ?? "", new RegExp(`byte ${bytes - 1} is not 0`));
  await failsWith("resource_fenced", cell.core.bind(newLease(resource)));
  assert.equal((await cell.core.probe(resource)).clean, false);
  assert.equal((await cell.core.reset(resource)).clean, false);
  isBroken = false;
  assert.deepEqual(await cell.core.reset(resource), {
    clean: true,
    detail: "every byte is zero, and nothing is under way",
  });
  assert.equal(await (await boundTo(cell)).read(bytes - 1, 1), "\0");
});

test("memory without a size, or with more than the machine has, is one line about that resource", async () => {
  const cell = makeCell([
    { resource: "MEMORY:/none", driver: "memory", options: {} },
    { resource, driver: "memory", options: { bytes: 2 ** 36 + 1 } },
  ]);
  const faults = await cell.core.start();
  assert.equal(faults.length, 2);
  assert.match(faults[0] ?? "", /bytes is missing; say how many bytes are leased/);
  assert.match(faults[1] ?? "", /bytes is 68719476737; give a whole number/);
});
