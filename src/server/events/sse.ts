/** `GET /v1/events`: server-sent events. An idle one costs its connection and a comment now and then, and no timer. */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { closeWith } from "../../cell/reset-socket.ts";
import { type Answer, errorAnswer, faultAnswer } from "../../protocol/answers/answer.ts";
import { readHttp } from "../../protocol/http/http-input.ts";
import type { RawQuery } from "../../protocol/http/query-string.ts";
import { events as operation } from "../../protocol/watching/watching.ts";
import { isPlace } from "../answering/tenant-use.ts";
import type { Credentials } from "../auth/authenticate.ts";
import type { Readers } from "../auth/may-read.ts";
import type { Connections } from "../http/connections.ts";
import { sendAnswer } from "../http/edge.ts";
import type { SlowReaders } from "../http/slow-readers.ts";
import type { Caller, Service } from "../service.ts";
import { type EventQuery, eventQueryOf, followEvents } from "./follow-events.ts";

export { eventQueryOf, followEvents } from "./follow-events.ts";

/** What may wait in memory for a slow reader before it is cut off. It comes back, and resumes where it was. */
const bufferedBytesMax = 4 * 2 ** 20;
/** Events that are gathered for one write at most; past that they are written before their time. */
const gatheredMax = 5_000;
/**
 * Streams take turns, so that a moment at which many are written to never comes: a write takes some 15 µs, and who
 * comes in while hundreds of them are made waits for all.
 */
const turnMs = 50;
const turnsMax = 300;

export interface EventStreams {
  open(request: FastifyRequest, reply: FastifyReply): void;
  readonly size: number;
  /** Ends all of them; their clients resume elsewhere, or here when it is back. */
  close(): void;
}

/** `isStillGood` is asked with every sign of life. */
export interface EventStreamsOptions extends Pick<Readers, "mayRead" | "isStillGood"> {
  readonly signOfLifeMs: number;
  readonly connections: Connections;
  readonly slowReaders: SlowReaders;
}

/** Of a stream that has begun nothing is kept but its socket: there may be very many of them. */
interface Stream {
  readonly socket: Socket;
  readonly shown: Credentials;
  isCaughtUp: boolean;
}

export function createEventStreams(
  service: Service,
  { mayRead, isStillGood, signOfLifeMs, connections, slowReaders }: EventStreamsOptions,
): EventStreams {
  const turns = Math.min(turnsMax, Math.ceil(signOfLifeMs / turnMs));
  const waiting: Set<Stream>[] = Array.from({ length: turns }, () => new Set());
  let size = 0;
  let enlisted = 0;
  let turn = 0;
  let timer: NodeJS.Timeout | null = null;

  /** One timer for all. A stream whose credential was deleted, or whose agent was taken up elsewhere, ends here. */
  function giveSigns(): void {
    turn = (turn + 1) % turns;
    for (const { socket, shown, isCaughtUp } of waiting[turn] ?? []) {
      if (!isStillGood(shown)) closeWith(socket, "");
      // A follower of few events would otherwise reconnect with the number of one that is long forgotten.
      else socket.write(isCaughtUp ? `: still here\nid: ${service.events.lastSeq}\n\n` : ": still here\n\n");
    }
  }

  function enlist(stream: Stream): void {
    // Not by size: all who come for others that went would then share one turn.
    const place = waiting[enlisted++ % turns];
    place?.add(stream);
    size++;
    timer ??= setInterval(giveSigns, signOfLifeMs / turns);
    stream.socket.once("close", () => {
      place?.delete(stream);
      size--;
      if (size > 0 || timer === null) return;
      clearInterval(timer);
      timer = null;
    });
  }

  function follow(response: ServerResponse, socket: Socket, shown: Credentials, query: Subscription): void {
    // Let go of once it has begun, so that the closures below do not keep it.
    let unanswered: ServerResponse | null = response;
    /** Frames of a portion of stored events, which are one write. */
    let together: string[] | null = null;
    const stream: Stream = { socket, shown, isCaughtUp: false };
    /** Frames that wait for `batch_ms` to be one write. */
    let gathered: Buffer[] = [];
    const filterKey = filterKeyOf(query);
    const write = (frames: Buffer): void => {
      socket.write(frames);
      slowReaders.wrote(frames.length);
      if (socket.writableLength <= bufferedBytesMax) return;
      service.counts.refuse("slow_reader");
      socket.destroy();
    };
    const flush = (): void => {
      const frames = gathered;
      gathered = [];
      if (frames.length > 0 && !socket.destroyed) write(joined(frames, filterKey));
    };
    const stop = followEvents(
      service,
      query,
      (seq, text) => {
        if (socket.destroyed) return;
        if (together !== null) {
          together.push(`id: ${seq}\ndata: ${text}\n\n`);
          return;
        }
        if (query.batchMs === 0) return write(frameOf(seq, text));
        // All streams of one interval are written to at the same moments, so that they can share what is written.
        if (gathered.length === 0) setTimeout(flush, query.batchMs - (performance.now() % query.batchMs));
        gathered.push(frameOf(seq, text));
        if (gathered.length >= gatheredMax) flush();
      },
      (answer) => (unanswered === null ? closeWith(socket, "") : refuseLast(unanswered, answer)),
      {
        begun: (seq) => {
          if (unanswered !== null) begin(unanswered, socket, seq);
          unanswered = null;
          enlist(stream);
        },
        together: (give) => {
          flush();
          together = [];
          give();
          if (together.length > 0 && !socket.destroyed) socket.write(together.join(""));
          together = null;
        },
        pace: () => drained(socket),
        caughtUp: (isSo) => {
          stream.isCaughtUp = isSo;
          // Not at once: who asks for nothing that was is caught up before there is anything to stop.
          if (isSo && !query.follows) queueMicrotask(() => end());
        },
      },
    );
    const end = (): void => {
      stop();
      closeWith(socket, "");
    };
    socket.once("close", stop);
  }

  /** Requests behind it were not served, so the connection ends with it. */
  function refuseLast(response: ServerResponse, answer: Answer): void {
    response.shouldKeepAlive = false;
    refuse(response, answer);
  }

  function refuse(response: ServerResponse, answer: Answer): void {
    service.counts.refuse(answer.code);
    sendAnswer(response, answer);
  }

  return {
    get size() {
      return size;
    },
    open(request, reply) {
      const { raw: response } = reply;
      const { caller } = request;
      if (caller === null) throw new TypeError("admission comes before the handler");
      const query = readEventQuery(request, caller);
      if ("status" in query) return refuse(response, query);
      const shown = request.raw.headers;
      const connection = connections.open.get(request.raw.socket);
      // It must be the only answer under way: a stream has no end that another could come after.
      if (connection === undefined || response.socket !== connection.socket) return void request.raw.socket.destroy();
      connection.isTaken = true;
      mayRead(caller).then(
        (refusal) => {
          const { socket } = response;
          if (socket === null || socket.destroyed) return;
          if (refusal !== null) return refuseLast(response, refusal);
          const place = service.uses.enter(caller.tenant, "subscriptionsMax");
          if (!isPlace(place)) return refuseLast(response, place);
          socket.once("close", () => place.leave());
          follow(response, socket, shown, query);
        },
        () => refuseLast(response, errorAnswer("database_unavailable", "The database is not available; try again.")),
      );
    },
    close() {
      for (const place of waiting) for (const { socket } of place) closeWith(socket, "");
    },
  };
}

interface Subscription extends EventQuery {
  /** False: it ends once all present events were sent. */
  readonly follows: boolean;
  /** 0: each event is a write of its own. */
  readonly batchMs: number;
}

/** `Last-Event-ID` goes before `since`: a browser that comes back keeps the address it was given first. */
function readEventQuery(request: FastifyRequest, caller: Caller): Subscription | Answer {
  const { params, query, headers } = request;
  const read = readHttp(operation, operation, { params, query: query as RawQuery, body: undefined });
  if (!read.ok) return faultAnswer(read);
  const lastId = headers["last-event-id"];
  if (lastId !== undefined && lastId !== "" && !(typeof lastId === "string" && /^\d{1,16}$/.test(lastId))) {
    const detail = "Last-Event-ID is not the id of an event; send the last one that came, or leave it out.";
    return errorAnswer("invalid_request", detail, { field: "Last-Event-ID" });
  }
  const batchMs = Number(read.value["batch_ms"] ?? 0);
  const asked = { ...eventQueryOf(read.value, caller), follows: read.value["follow"] !== false, batchMs };
  return lastId ? { ...asked, since: Number(lastId) } : asked;
}

/**
 * The first words say how soon to come back, and from where: who is cut off before the first event loses none. The body
 * ends with the connection, so nothing is wrapped around an event, and from here on the socket alone is needed.
 */
function begin(response: ServerResponse, socket: Socket, seq: number): void {
  response.useChunkedEncodingByDefault = false;
  response.writeHead(200, [
    "Content-Type",
    "text/event-stream; charset=utf-8",
    "Cache-Control",
    "no-store",
    "X-Accel-Buffering",
    "no",
  ]);
  response.write(`retry: 1000\nid: ${seq}\n\n`);
  response.detachSocket(socket);
}

let lastSeq = -1;
let lastFrame = Buffer.alloc(0);
let lastText = "";

/** All who want an event are given it one after the other, so the frame of the last one is nearly always the one. */
function frameOf(seq: number, text: string): Buffer {
  if (seq !== lastSeq || text !== lastText) {
    lastFrame = Buffer.from(`id: ${seq}\ndata: ${text}\n\n`);
    lastSeq = seq;
    lastText = text;
  }
  return lastFrame;
}

/** Equal for streams that are given the same events. */
function filterKeyOf({ tenant, types, resource, agentId, seesAudit }: EventQuery): string {
  return JSON.stringify([tenant, types, resource, agentId, seesAudit]);
}

let lastJoined: { readonly frames: readonly Buffer[]; readonly key: string; readonly text: Buffer } | null = null;

/** Of many open pages each gathers the same frames: they are copied together once. */
function joined(frames: readonly Buffer[], key: string): Buffer {
  const isSame =
    lastJoined !== null &&
    lastJoined.key === key &&
    lastJoined.frames.length === frames.length &&
    lastJoined.frames[0] === frames[0] &&
    lastJoined.frames.at(-1) === frames.at(-1);
  if (!isSame) lastJoined = { frames, key, text: Buffer.concat(frames) };
  return lastJoined?.text ?? Buffer.concat(frames);
}

/** Resolves when what was written before has been taken, or never will be. */
export function drained(socket: Socket): Promise<void> {
  if (!socket.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off("drain", done);
      socket.off("close", done);
      resolve();
    };
    socket.once("drain", done);
    socket.once("close", done);
  });
}
