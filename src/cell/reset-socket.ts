/** The end of a connection at once (G6). */
import type { Socket } from "node:net";

/**
 * Reset rather than closed, so that what waits in the kernel's buffers is dropped too. While the socket is being shut
 * down (its other side has gone, or we have said our last) a reset fails, and Node then forgets the socket without
 * closing it; so that moment is waited for. It has nothing left to write by then.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  const isShuttingDown = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (isShuttingDown) socket.once("finish", () => resetSocket(socket));
  else socket.resetAndDestroy();
}
