/** A control plane for tests of the link: a real WebSocket server that says what the test tells it to. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import {
  type CellDo,
  type CellDone,
  type CellFrame,
  type CellHello,
  cellLinkPath,
  linkFrameText,
  readCellFrame,
  type ServerFrame,
} from "../../protocol/resources/cell-link.ts";
import { CellKeys } from "../../token/node/cell-keys.ts";
import { readCellConfig } from "../config.ts";
import { CellCore } from "../core.ts";
import { CellLink, type LinkEnd } from "../link.ts";
import { atEnd, eventually } from "./test-cell.ts";

export const presentKey = { id: "k1", key: Buffer.alloc(32, 7).toString("base64url"), retires_at: null };

type OfType<T extends CellFrame["type"]> = Extract<CellFrame, { readonly type: T }>;

export class Conversation {
  readonly heard: CellFrame[] = [];
  readonly request: IncomingMessage;
  readonly socket: WebSocket;
  private seq = 0;

  constructor(socket: WebSocket, request: IncomingMessage) {
    this.socket = socket;
    this.request = request;
    socket.on("error", () => {});
    socket.on("message", (data) => {
      const read = readCellFrame(String(data));
      assert(read.ok, `${String(data)}: ${read.ok ? "" : read.detail}`);
      this.heard.push(read.frame);
    });
  }

  say(frame: ServerFrame): void {
    this.socket.send(linkFrameText(frame));
  }

  of<T extends CellFrame["type"]>(type: T): readonly OfType<T>[] {
    return this.heard.filter((frame): frame is OfType<T> => frame.type === type);
  }

  async next<T extends CellFrame["type"]>(type: T, at = 0): Promise<OfType<T>> {
    await eventually(() => this.of(type).length > at);
    const frame = this.of(type)[at];
    assert(frame !== undefined);
    return frame;
  }

  async welcome(change: Partial<Extract<ServerFrame, { type: "welcome" }>> = {}): Promise<CellHello> {
    const hello = await this.next("hello");
    this.say({
      type: "welcome",
      now: Date.now(),
      tenant: "acme",
      keys: [presentKey],
      heartbeat_ms: 50,
      alive_ms: 60_000,
      refused: [],
      ...change,
    });
    return hello;
  }

  async tell(command: CellDo extends infer C ? (C extends CellDo ? Omit<C, "seq" | "type"> : never) : never) {
    const seq = ++this.seq;
    this.say({ type: "do", seq, ...command } as CellDo);
    await eventually(() => this.of("done").some((done) => done.seq === seq));
    return this.of("done").find((done) => done.seq === seq) as CellDone;
  }

  /** Answers what asks for an answer, until the connection ends. */
  answerBeats(): void {
    this.socket.on("message", (data) => {
      const read = readCellFrame(String(data));
      if (read.ok && read.frame.type === "heartbeat") this.say({ type: "beat", seq: read.frame.seq, now: Date.now() });
    });
  }
}

export interface TestServer {
  readonly url: string;
  readonly conversations: readonly Conversation[];
  conversation(at: number): Promise<Conversation>;
}

/** `refuse` answers a handshake with this status and body instead. */
export async function startTestServer(refuse: { status: number; body: object } | null = null): Promise<TestServer> {
  const http = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  const conversations: Conversation[] = [];
  http.on("upgrade", (request, socket, head) => {
    if (refuse !== null || request.url !== cellLinkPath) {
      const { status, body } = refuse ?? { status: 404, body: {} };
      const text = JSON.stringify(body);
      socket.end(
        `HTTP/1.1 ${status} No\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
      );
      return;
    }
    sockets.handleUpgrade(request, socket, head, (opened) => conversations.push(new Conversation(opened, request)));
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  atEnd(() => {
    for (const { socket } of conversations) socket.terminate();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    conversations,
    async conversation(at) {
      await eventually(() => conversations.length > at);
      const found = conversations[at];
      assert(found !== undefined);
      return found;
    },
  };
}

export interface LinkedCell {
  readonly core: CellCore;
  readonly link: CellLink;
  readonly keys: CellKeys;
  readonly troubles: string[];
  readonly ended: Promise<LinkEnd>;
}

export function linkCell(url: string, resources: readonly object[], key: string | null = "lhk_test"): LinkedCell {
  const config = readCellConfig(JSON.stringify({ cell: "linked", resources }), "cell.json");
  assert.deepEqual(config.faults, []);
  const keys = new CellKeys("linked", [{ id: "none", key: new Uint8Array(32).fill(9), retiresAt: null }]);
  const troubles: string[] = [];
  const core: CellCore = new CellCore(config, keys, { onEvent: (event) => link.tell(event) });
  const link: CellLink = new CellLink({
    contact: async () => ({ url, key, tls: null }),
    cell: "linked",
    version: "0.1.0",
    core,
    keys,
    onWelcome: () => {},
    onTrouble: (reason) => troubles.push(reason),
  });
  const ended = core.start().then(() => link.run());
  atEnd(async () => {
    link.close();
    await core.close();
  });
  return { core, link, keys, troubles, ended };
}

let fence = 0;

export function wireLease(resource: string, ttlMs = 60_000) {
  fence++;
  return {
    tenant: "acme",
    id: `wire-${fence}`,
    resource,
    predicate: "MUTATES" as const,
    holder: "ann",
    generation: 1,
    fence,
    units: 1,
    expires_at: Date.now() + ttlMs,
  };
}
