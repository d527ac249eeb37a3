/** Counts and limits connections: one too many is answered with an error, and closed. */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import { sendRaw } from "./send.ts";

/** How many can get that error at once; past these, connections are closed without an answer. */
const turnedAwayMax = 100;
const lingerMs = 1_000;

export interface Connections {
  readonly size: number;
  /** Whatever they are in the middle of: requests, event streams, WebSockets. */
  destroyAll(): void;
}

export function limitConnections(server: Server, max: number): Connections {
  const sockets = new Set<Socket>();
  server.maxConnections = max + turnedAwayMax;
  server.prependListener("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    if (sockets.size <= max) return;
    sendRaw(socket, tooMany);
    socket.setTimeout(lingerMs, () => socket.destroy());
  });
  return {
    get size() {
      return sockets.size;
    },
    destroyAll() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

const tooMany = errorAnswer(
  "too_many_connections",
  "The server has all the connections it can take; try again later.",
  {
    retry_after_ms: 1_000,
  },
);
