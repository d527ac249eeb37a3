/** How many connections there are, and no more than are allowed: one too many is told so, and closed. */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { errorAnswer } from "../protocol/answer.ts";
import { sendRaw } from "./send.ts";

/** How many can be told at once; past these, connections are closed without a word. */
const turnedAwayMax = 100;
const lingerMs = 1_000;

export interface Connections {
  readonly size: number;
}

export function limitConnections(server: Server, max: number): Connections {
  let size = 0;
  server.maxConnections = max + turnedAwayMax;
  server.prependListener("connection", (socket: Socket) => {
    size++;
    socket.once("close", () => {
      size--;
    });
    if (size <= max) return;
    sendRaw(socket, tooMany);
    socket.setTimeout(lingerMs, () => socket.destroy());
  });
  return {
    get size() {
      return size;
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
