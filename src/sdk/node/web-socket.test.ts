import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocketServer } from "ws";
import { openNodeSocket } from "./web-socket.ts";

/** A connection to `ws`, which is what the server uses, or to a peer that writes its frames by hand. */
async function connected(t: TestContext, byHand: boolean) {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const peer = Promise.withResolvers<Socket>();
  const heard: string[] = [];
  const accepting = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket: Socket, head) => {
    t.after(() => socket.destroy());
    if (!byHand) {
      accepting.handleUpgrade(request, socket, head, (webSocket) => {
        webSocket.on("message", (data) => heard.push(String(data)));
        peer.resolve(socket);
      });
      return;
    }
    const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${guid}`).digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
    );
    peer.resolve(socket);
  });
  t.after(() => server.close());
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const received: string[] = [];
  const socket = openNodeSocket(
    { url: `http://127.0.0.1:${port}/v1/stream`, headers: {}, tls: null },
    { opened: opened.resolve, received: (text) => received.push(text), closed: closed.resolve },
  );
  await opened.promise;
  return { socket, received, heard, closed: closed.promise, peer: await peer.promise };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2));
}

const lengths = [0, 1, 2, 3, 4, 5, 125, 126, 127, 65_535, 65_536, 200_000];

test("texts of all lengths arrive at the server as they were sent, several frames in one write", async (t) => {
  const { socket, heard } = await connected(t, false);
  const texts = lengths.map((length) => "aé€😀".repeat(length).slice(0, length));
  for (const text of texts) socket.send(text);
  await until(() => heard.length === texts.length);
  assert.deepEqual(
    heard,
    texts.map((text) => Buffer.from(text).toString()),
  );
});

const frame = (first: number, payload: Buffer): Buffer => {
  const { length } = payload;
  const head = length < 126 ? [first, length] : length < 65_536 ? [first, 126, length >> 8, length & 255] : null;
  if (head !== null) return Buffer.concat([Buffer.from(head), payload]);
  const long = Buffer.alloc(10);
  long[0] = first;
  long[1] = 127;
  long.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([long, payload]);
};

test("texts of all lengths are received, cut anywhere, in fragments, and with pings between them", async (t) => {
  const { received, peer } = await connected(t, true);
  const texts = lengths.map((length) => "x".repeat(length));
  const pongs = once(peer, "data");
  const all = Buffer.concat([
    ...texts.map((text) => frame(0x81, Buffer.from(text))),
    frame(0x01, Buffer.from("grün ").subarray(0, 3)),
    frame(0x89, Buffer.from("are you there?")),
    frame(0x00, Buffer.from("grün ").subarray(3)),
    frame(0x80, Buffer.from("€")),
  ]);
  for (let at = 0; at < all.length; at += 7_001) {
    peer.write(all.subarray(at, at + 7_001));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until(() => received.length === texts.length + 1);
  assert.deepEqual(received, [...texts, "grün €"]);
  const [pong] = (await pongs) as [Buffer];
  assert.equal(pong[0], 0x8a);
  const mask = pong.subarray(2, 6);
  assert.equal(
    Buffer.from(pong.subarray(6).map((byte, at) => byte ^ (mask[at % 4] ?? 0))).toString(),
    "are you there?",
  );
});

for (const [name, bytes] of [
  ["is masked", Buffer.from([0x81, 0x81, 1, 2, 3, 4, 0x60])],
  ["continues nothing", frame(0x80, Buffer.from("x"))],
  ["is of bytes", frame(0x82, Buffer.from("x"))],
  ["is endless", Buffer.from([0x81, 127, 0, 0xff, 0, 0, 0, 0, 0, 0])],
] as const) {
  test(`a frame that ${name} ends the connection`, async (t) => {
    const { peer, closed, received } = await connected(t, true);
    peer.write(bytes);
    await closed;
    assert.deepEqual(received, []);
  });
}

test("a close by either end is reported once, and a peer that is not a stream is one that closed", async (t) => {
  const { peer, closed } = await connected(t, true);
  peer.write(frame(0x88, Buffer.alloc(0)));
  await closed;
  const other = await connected(t, false);
  other.socket.close();
  await other.closed;
  const plain = createServer((_request, response) => response.end("no")).listen(0, "127.0.0.1");
  await once(plain, "listening");
  t.after(() => plain.close());
  const address = plain.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  let closes = 0;
  await new Promise<void>((resolve) => {
    const events = { opened: () => assert.fail("opened"), received: () => undefined };
    const done = (): void => {
      closes++;
      resolve();
    };
    openNodeSocket({ url: `http://127.0.0.1:${port}/`, headers: {}, tls: null }, { ...events, closed: done });
  });
  assert.equal(closes, 1);
});
