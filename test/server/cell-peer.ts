/** A scripted cell: it speaks the link's frames, and truthfully unless the test says otherwise. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { TestContext } from "node:test";
import { WebSocket } from "ws";
import {
  type CellDo,
  type CellDone,
  type CellInventoryEntry,
  type CellLinkBinding,
  type CellWelcome,
  cellLinkPath,
  readServerFrame,
  type ServerFrame,
} from "../../src/protocol/resources/cell-link.ts";
import { CellKeys } from "../../src/token/node/cell-keys.ts";
import { until } from "./harness.ts";

export type Answerer = (order: CellDo) => Promise<CellDone | null> | CellDone | null;

export interface PeerOptions {
  readonly key?: string | undefined;
  readonly tenant?: string;
  readonly cell?: string;
  readonly session?: string;
  readonly inventory?: readonly CellInventoryEntry[];
  readonly bindings?: readonly CellLinkBinding[];
}

export interface Peer {
  readonly socket: WebSocket;
  readonly session: string;
  readonly received: ServerFrame[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** How it answers from now on; null: not at all. */
  answer: Answerer;
  send(frame: unknown): void;
  /** The first frame of this kind that was not taken yet. */
  take<T extends ServerFrame["type"]>(type: T): Promise<Extract<ServerFrame, { type: T }>>;
  order<O extends CellDo["op"]>(op: O): Promise<Extract<CellDo, { op: O }>>;
  welcome(): Promise<CellWelcome>;
  close(): void;
}

export function entry(resource: string, over: Partial<CellInventoryEntry> = {}): CellInventoryEntry {
  return { resource, driver: "test", capacity: null, hardware: [], ready: true, fault: null, fenced: null, ...over };
}

/** Obeys every order, and its reports are believed. */
export const obedient: Answerer = ({ seq, op }) => {
  switch (op) {
    case "bind":
      return { type: "done", seq, ok: true, coordinate: "http://gateway.test/" };
    case "reset":
    case "probe":
      return { type: "done", seq, ok: true, clean: true, detail: "" };
    case "update":
    case "teardown":
      return { type: "done", seq, ok: true };
  }
};

export function failing(op: CellDo["op"], code: string, detail: string): Answerer {
  return (order) => (order.op === op ? { type: "done", seq: order.seq, ok: false, code, detail } : obedient(order));
}

/** Opens the link without sending anything. */
export async function openLink(t: TestContext, url: string, options: PeerOptions = {}): Promise<Peer> {
  const { key, tenant, session = randomUUID() } = options;
  const socket = new WebSocket(`${url.replace("http", "ws")}${cellLinkPath}`, {
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(tenant !== undefined && { "leasehold-tenant": tenant }),
    },
  });
  t.after(() => socket.terminate());
  const received: ServerFrame[] = [];
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on("close", (code, reason) => resolve({ code, reason: String(reason) }));
  });
  const send = (frame: unknown): void => socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  const take = <F extends ServerFrame>(isIt: (frame: ServerFrame) => frame is F, what: string): Promise<F> =>
    until(() => {
      const at = received.findIndex(isIt);
      return at < 0 ? null : (received.splice(at, 1)[0] as F);
    }, what);
  const peer: Peer = {
    socket,
    session,
    received,
    closed,
    answer: obedient,
    send,
    take: (type) =>
      take((frame): frame is Extract<ServerFrame, { type: typeof type }> => frame.type === type, `a ${type}`),
    order: (op) =>
      take(
        (frame): frame is Extract<CellDo, { op: typeof op }> => frame.type === "do" && frame.op === op,
        `ordered to ${op}`,
      ),
    welcome: () => peer.take("welcome"),
    close: () => socket.terminate(),
  };
  socket.on("message", (data) => {
    const read = readServerFrame(String(data));
    assert.ok(read.ok, `${JSON.stringify(read)} ${data}`);
    const { frame } = read;
    received.push(frame);
    if (frame.type !== "do") return;
    void Promise.resolve(peer.answer(frame)).then((done) => {
      if (done !== null && socket.readyState === WebSocket.OPEN) send(done);
    });
  });
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
    socket.once("unexpected-response", (_request, response) => reject(new Error(`status ${response.statusCode}`)));
  });
  return peer;
}

export function hello({ cell = "c1", inventory = [entry("GPU:/a")], bindings = [] }: PeerOptions, session: string) {
  return { type: "hello", cell, session, version: "0.1.0", inventory, bindings };
}

/** Enrolled, and answering. */
export async function joinCell(
  t: TestContext,
  url: string,
  options: PeerOptions = {},
): Promise<Peer & { keys: CellKeys }> {
  const peer = await openLink(t, url, options);
  peer.send(hello(options, peer.session));
  const { keys } = await peer.welcome();
  return Object.assign(peer, { keys: keysOf(options.cell ?? "c1", keys) });
}

export function keysOf(cell: string, keys: CellWelcome["keys"]): CellKeys {
  return new CellKeys(
    cell,
    keys.map(({ id, key, retires_at: retiresAt }) => ({
      id,
      key: new Uint8Array(Buffer.from(key, "base64url")),
      retiresAt,
    })),
  );
}
