/**
 * The end of a server, in order: nobody new comes in, what is held is answered with how things stand, streams end,
 * what is under way is committed and answered, and then the data is let go.
 */
import type { Server } from "node:http";
import type { EventStreams } from "./events/sse.ts";
import type { Connections } from "./http/edge.ts";
import type { Service } from "./service.ts";
import type { StreamServer } from "./stream/stream.ts";

export interface ShutDownOptions {
  readonly server: Server;
  readonly connections: Connections;
  readonly service: Service;
  readonly eventStreams: EventStreams;
  readonly streams: StreamServer;
  /** After this long, connections that are still open are closed. */
  readonly deadlineMs: number;
}

/** How often connections are looked at that have become idle meanwhile. */
const lookMs = 20;

export async function shutDown(options: ShutDownOptions): Promise<void> {
  const { server, connections, service, eventStreams, streams, deadlineMs } = options;
  const allGone = new Promise<void>((resolve) => server.close(() => resolve()));
  service.requests.wakeAll(true);
  service.polls.wakeAll();
  eventStreams.close();
  streams.close();
  service.cells.close();
  const idle = setInterval(() => server.closeIdleConnections(), lookMs);
  const deadline = setTimeout(() => connections.destroyAll(), deadlineMs);
  await allGone;
  clearInterval(idle);
  clearTimeout(deadline);
  await service.engine.close();
}
