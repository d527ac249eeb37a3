/** A cell for tests: real drivers, sockets and processes; leases as the control plane would send them. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server as HttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { type Caveat, narrow } from "../../token/index.ts";
import { CellKeys } from "../../token/node/cell-keys.ts";
import type { CellLease } from "../binding.ts";
import type { CellClock } from "../clock.ts";
import { readCellConfig } from "../config.ts";
import { CellCore, type CellEvent } from "../core.ts";
import type { MakeDriver } from "../drivers/index.ts";
import { CellFailure, type CellFailureCode } from "../failure.ts";

/** Its own for each process, so that two runs of the tests on one machine do not end each other's processes. */
export const testCellName = `test-${process.pid}`;

export const testKeys = new CellKeys(testCellName, [{ id: "k1", key: new Uint8Array(32).fill(3), retiresAt: null }]);

export const scratch = mkdtempSync(join(tmpdir(), "leasehold-cell-"));
const ends: (() => Promise<unknown> | unknown)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
  rmSync(scratch, { recursive: true, force: true });
});

/** Runs when the tests of the file are over. */
export function atEnd(end: () => Promise<unknown> | unknown): void {
  ends.push(end);
}

export interface TestCell {
  readonly core: CellCore;
  readonly events: CellEvent[];
  readonly lines: string[];
}

export interface TestCellOptions {
  readonly clock?: CellClock;
  readonly settings?: Record<string, unknown>;
  /** In place of every configured driver: one with a planted fault. */
  readonly plant?: MakeDriver;
}

export function makeCell(resources: readonly object[], options: TestCellOptions = {}): TestCell {
  const { clock, settings = {}, plant } = options;
  const text = JSON.stringify({ cell: testCellName, ...settings, resources });
  const read = readCellConfig(text, join(scratch, "cell.json"));
  const planted = plant && { resources: read.resources.map((one) => ({ ...one, make: plant })) };
  const config = { ...read, ...planted };
  const events: CellEvent[] = [];
  const lines: string[] = [];
  const core = new CellCore(config, testKeys, {
    ...(clock && { clock }),
    onEvent: (event) => events.push(event),
    log: (line) => lines.push(line),
  });
  atEnd(() => core.close());
  return { core, events, lines };
}

let fence = 0;

export function newLease(resource: string, ttlMs = 60_000, change: Partial<CellLease> = {}): CellLease {
  fence++;
  const expiresAt = Date.now() + ttlMs;
  const whose = { tenant: "acme", id: `lease-${fence}`, holder: "ann", predicate: "MUTATES" } as const;
  return { ...whose, resource, generation: 1, fence, units: 1, expiresAt, ...change };
}

export function renewed(lease: CellLease, ttlMs = 60_000): CellLease {
  fence++;
  return { ...lease, generation: lease.generation + 1, fence, expiresAt: Date.now() + ttlMs };
}

export function narrowed(token: string, ...caveats: readonly Caveat[]): string {
  const result = narrow(token, caveats);
  assert(typeof result === "string", JSON.stringify(result));
  return result;
}

export async function failsWith(code: CellFailureCode, work: Promise<unknown>): Promise<CellFailure> {
  const error = await work.then(
    () => assert.fail(`It should have failed with ${code}.`),
    (cause: unknown) => cause,
  );
  assert(error instanceof CellFailure, String(error));
  assert.equal(error.code, code, error.message);
  return error;
}

/** A service behind a gateway; host:port. */
export async function startHttp(listener: RequestListener): Promise<{ server: HttpServer; address: string }> {
  const server = createServer(listener);
  const address = await opened(server);
  atEnd(() => server.closeAllConnections());
  return { server, address };
}

export async function startTcp(serve: (socket: Socket) => void): Promise<{ server: Server; address: string }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    serve(socket);
  });
  const address = await opened(server);
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { server, address };
}

async function opened(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Waits for something to become true, however long the machine needs; the runner's own limit ends what never does. */
export async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}
