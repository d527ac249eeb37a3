/** Connections that are over: cut at once (G6), or after a last word. */
import { type Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** How long a refused client has to read why. */
const lastWordMs = 1_000;

/** What a connection over TLS goes over: only that can be reset. */
const carriers = new WeakMap<Socket, Socket>();

/** For a listener that speaks TLS, before it listens. */
export function noteCarriers(server: Server): void {
  const arriving = new Map<string, Socket>();
  const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  server.prependListener("connection", (socket: Socket) => {
    const name = nameOf(socket);
    arriving.set(name, socket);
    socket.once("close", () => arriving.delete(name));
  });
  server.prependListener("secureConnection", (socket: Socket) => {
    const carrier = arriving.get(nameOf(socket));
    if (carrier !== undefined) carriers.set(socket, carrier);
  });
}

/**
 * Reset rather than closed, so that what waits in the kernel's buffers is dropped too. While the socket is being shut
 * down (its other side has gone, or we have said our last) a reset fails, and Node then forgets the socket without
 * closing it; so that moment is waited for. It has nothing left to write by then. A socket that was forgotten keeps its file descriptor,
 * and the process loops for ever in Node's own clean-up when it exits.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  const carrier = carriers.get(socket);
  if (carrier !== undefined) {
    carrier.resetAndDestroy();
    return void socket.destroy();
  }
  const isShuttingDown = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (isShuttingDown) socket.once("finish", () => resetSocket(socket));
  // Node resets only what is plain TCP.
  else if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/**
 * Says why, and is gone: a client that never closes its side would otherwise keep its place among the connections.
 * What it still sends is read and dropped, because unread bytes turn the close into a reset that loses the last word.
 */
export function closeWith(socket: Duplex, lastWord: string | Buffer): void {
  if (!socket.writable && !socket.writableEnded) return void socket.destroy();
  if (!socket.writableEnded) socket.end(lastWord);
  socket.removeAllListeners("data");
  socket.resume();
  const timer = setTimeout(() => (socket instanceof Socket ? resetSocket(socket) : socket.destroy()), lastWordMs);
  socket.once("close", () => clearTimeout(timer));
}
