/** A server that answers like a PostgreSQL of a version that cannot be had from npm: it knows the login and one query. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";

export interface OldServer {
  readonly url: string;
  close(): Promise<void>;
}

const int4 = 23;
const textType = 25;

export async function startOldServer(version: number): Promise<OldServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let isLoggedIn = false;
    let rest = Buffer.alloc(0);
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (;;) {
        // The first message has no letter before its length.
        const lengthAt = isLoggedIn ? 1 : 0;
        if (rest.length < lengthAt + 4) return;
        const end = lengthAt + rest.readInt32BE(lengthAt);
        if (rest.length < end) return;
        const letter = isLoggedIn ? String.fromCharCode(rest[0] ?? 0) : "";
        rest = rest.subarray(end);
        if (letter === "X") return void socket.end();
        if (letter === "Q") socket.write(answerWith({ version: [int4, String(version)], words: [textType, "old"] }));
        else if (!isLoggedIn) socket.write(message("R", int32(0)));
        isLoggedIn = true;
        socket.write(message("Z", Buffer.from("I")));
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `postgres://postgres@127.0.0.1:${address.port}/postgres`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** One row: its description, itself, and that it was all. */
function answerWith(columns: Readonly<Record<string, readonly [type: number, value: string]>>): Buffer {
  const entries = Object.entries(columns);
  const described = entries.map(([name, [type]]) =>
    // No table, no column of one, the type, any size, no modifier, as text.
    Buffer.concat([Buffer.from(`${name}\0`), int32(0), int16(0), int32(type), int16(-1), int32(-1), int16(0)]),
  );
  const values = entries.map(([, [, value]]) => Buffer.concat([int32(Buffer.byteLength(value)), Buffer.from(value)]));
  return Buffer.concat([
    message("T", int16(entries.length), ...described),
    message("D", int16(entries.length), ...values),
    message("C", Buffer.from("SELECT 1\0")),
  ]);
}

function message(letter: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(letter), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}
