/**
 * The WebSocket stream: the same commands as over HTTP, many in flight, answered by id as they become durable. A frame
 * may carry many commands, and all replies of one batch leave in one frame: a busy client pays once for many. A reader
 * that does not keep up is cut off, and the others do not notice.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import {
  type Answer,
  answerJson,
  errorAnswer,
  faultAnswer as inputFaultAnswer,
} from "../../protocol/answers/answer.ts";
import type { Input } from "../../protocol/operation.ts";
import { findOperation } from "../../protocol/operations.ts";
import { limits } from "../../protocol/schema/limits.ts";
import {
  dropOp,
  eventFrameText,
  type FrameId,
  joinFrames,
  readFrame,
  replyFrameText,
  type StreamCommand,
} from "../../protocol/watching/stream.ts";
import { events as operation } from "../../protocol/watching/watching.ts";
import { answerForFault } from "../answering/faults.ts";
import { isPlace, quotaAnswer } from "../answering/tenant-use.ts";
import type { Readers } from "../auth/may-read.ts";
import { dispatch } from "../dispatch.ts";
import { drained, eventQueryOf, followEvents } from "../events/sse.ts";
import type { SlowReaders } from "../http/slow-readers.ts";
import type { Caller, Service } from "../service.ts";
import { FrameQueue, type Source } from "./frame-queue.ts";

/** Commands of one connection that are not answered yet. */
const inFlightMax = 10_000;
/** Subscriptions to events of one connection: one costs as much as a connection of its own. */
const subscriptionsMax = 16;
/** What may wait in memory for a slow reader before it is cut off. */
const bufferedBytesMax = 16 * 2 ** 20;
/** Past this a frame is sent before all its replies are together, so that a reader can begin. */
const frameBytesAim = 256 * 1024;

export interface StreamServer {
  /** Takes over a socket whose caller is known. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller): void;
  readonly connections: number;
  close(): void;
}

export function createStreamServer(service: Service, readers: Readers, slowReaders: SlowReaders): StreamServer {
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: limits.bodyBytesMax });
  const connections = new Set<Connection>();
  const queue = new FrameQueue(service.engine);
  return {
    get connections() {
      return connections.size;
    },
    upgrade(request, socket, head, caller) {
      server.handleUpgrade(request, socket, head, (webSocket) => {
        const connection = new Connection({ service, readers, queue, slowReaders }, webSocket, request.socket, caller);
        connections.add(connection);
        webSocket.on("close", () => {
          connections.delete(connection);
          connection.end();
        });
      });
    },
    close() {
      for (const connection of connections) connection.goAway();
      server.close();
    },
  };
}

/** What all connections share. */
interface Shared {
  readonly service: Service;
  readonly readers: Readers;
  readonly queue: FrameQueue;
  readonly slowReaders: SlowReaders;
}

class Connection {
  private readonly service: Service;
  private readonly readers: Readers;
  private readonly slowReaders: SlowReaders;
  private readonly socket: WebSocket;
  /** The one below. */
  private readonly wire: Socket;
  private readonly caller: Caller;
  /** What is under way and can be dropped, by the id of its command. */
  private readonly holds = new Map<FrameId, () => void>();
  private readonly subscriptions = new Map<FrameId, () => void>();
  private outbox: string[] = [];
  private outboxBytes = 0;
  private flushIsSet = false;
  private inFlight = 0;
  private isOver = false;
  /** Nothing is read from it for a while, because it sent too much. */
  private isResting = false;
  /** Commands of the frame that is being read that its rate limit refused. */
  private limited = 0;

  constructor({ service, readers, queue, slowReaders }: Shared, socket: WebSocket, wire: Socket, caller: Caller) {
    this.service = service;
    this.readers = readers;
    this.slowReaders = slowReaders;
    this.socket = socket;
    this.wire = wire;
    this.caller = caller;
    const source: Source = { pause: () => socket.pause(), resume: () => this.isResting || socket.resume() };
    socket.on("message", (data, isBinary) => queue.take(source, () => this.receive(data, isBinary)));
    // The close that follows an error is what ends the connection.
    socket.on("error", () => socket.terminate());
  }

  private receive(data: RawData, isBinary: boolean): void {
    if (this.isOver) return;
    if (isBinary) return this.reply(null, errorAnswer("invalid_request", "Send frames of text, not of bytes."));
    const text = data.toString();
    const isLarge = text.length >= limits.bytesPerRequest;
    if (isLarge) this.service.limiter.charge(this.caller.meter, text.length);
    this.limited = 0;
    this.read(text);
    if (isLarge || this.limited > 0) this.rest(Math.max(1, this.limited));
  }

  private read(text: string): void {
    let frame: unknown;
    try {
      frame = JSON.parse(text);
    } catch {
      return this.reply(
        null,
        errorAnswer("invalid_request", "The frame is not JSON; send a command, or an array of them."),
      );
    }
    for (const one of readFrame(frame)) {
      if (one.type === "fault") this.reply(one.id, inputFaultAnswer(one.fault));
      else this.run(one);
    }
  }

  /**
   * S4: to read a frame and to refuse what is in it takes time too, so the next ones wait until as many commands would be let
   * through.
   */
  private rest(commands: number): void {
    const { meter } = this.caller;
    const ms = this.isResting || meter === null ? 0 : this.service.limiter.waitMs(meter, commands);
    if (ms === 0) return;
    this.isResting = true;
    this.socket.pause();
    setTimeout(
      () => {
        this.isResting = false;
        if (!this.isOver) this.socket.resume();
      },
      Math.min(ms, limits.restMsMax),
    ).unref();
  }

  private run({ id, op, input }: StreamCommand): void {
    if (op === dropOp) return this.drop(id);
    const tooMany = this.service.limiter.take(this.caller.meter);
    if (tooMany !== null) {
      this.service.counts.refuse(tooMany.code);
      this.limited++;
      return this.reply(id, tooMany);
    }
    const operation = findOperation(op);
    if (operation === undefined) {
      return this.reply(
        id,
        errorAnswer("not_found", `There is no operation ${op.slice(0, limits.idLengthMax)}; see /openapi.json.`),
      );
    }
    const checked = operation.check(input);
    if (!checked.ok) return this.reply(id, inputFaultAnswer(checked));
    if (operation.name === "events") return this.subscribe(id, checked.value);
    if (this.inFlight >= inFlightMax) {
      return this.reply(
        id,
        errorAnswer("too_many_in_flight", `At most ${inFlightMax} commands may be unanswered; wait for some.`),
      );
    }
    this.inFlight++;
    let isOver = false;
    const respond = (answered: Answer): number => {
      if (isOver) return 0;
      isOver = true;
      this.inFlight--;
      this.holds.delete(id);
      const text = replyFrameText(id, answered);
      this.send(text);
      return text.length;
    };
    const drop = dispatch(this.service, operation, checked.value, this.caller, respond);
    if (drop === null || isOver) return;
    // A client that uses an id twice at once has both dropped.
    const before = this.holds.get(id);
    this.holds.set(id, () => {
      before?.();
      if (isOver) return;
      isOver = true;
      this.inFlight--;
      drop();
    });
  }

  /** As if the client had gone, for this command alone. It is not answered any more. */
  private drop(id: FrameId): void {
    this.holds.get(id)?.();
    this.holds.delete(id);
  }

  /** Events come until the connection ends, or the same id subscribes again. */
  private subscribe(id: FrameId, input: Input): void {
    if (operation.roles !== "anyone" && !operation.roles.includes(this.caller.actor.role)) {
      return this.reply(id, errorAnswer("forbidden", "A key with this role may not follow events."));
    }
    if (input["follow"] === false) {
      const detail = "The stream only follows events; ask GET /v1/events for what there is, or leave this out.";
      return this.reply(id, errorAnswer("invalid_request", detail, { field: "follow" }));
    }
    this.readers.mayRead(this.caller).then(
      (refused) => {
        if (this.isOver) return;
        if (refused !== null) this.reply(id, refused);
        else this.follow(id, input);
      },
      (fault: unknown) => this.reply(id, answerForFault(this.service, fault)),
    );
  }

  private follow(id: FrameId, input: Input): void {
    this.unsubscribe(id);
    const { tenant } = this.caller;
    const { size } = this.subscriptions;
    const place =
      size < subscriptionsMax
        ? this.service.uses.enter(tenant, "subscriptionsMax")
        : quotaAnswer("subscriptions_per_connection_max", size, subscriptionsMax, tooManySubscriptions);
    if (!isPlace(place)) {
      this.service.counts.refuse(place.code);
      return this.reply(id, place);
    }
    this.reply(id, answerJson(200, { subscribed: true }));
    let stop = (): void => undefined;
    // Before it begins: it may end at once.
    this.subscriptions.set(id, () => {
      place.leave();
      stop();
    });
    stop = followEvents(
      this.service,
      eventQueryOf(input, this.caller),
      (seq, text) => this.send(eventFrameText(seq, text)),
      (ended) => {
        place.leave();
        this.subscriptions.delete(id);
        this.reply(id, ended);
      },
      { pace: () => drained(this.wire) },
    );
  }

  private unsubscribe(id: FrameId): void {
    this.subscriptions.get(id)?.();
    this.subscriptions.delete(id);
  }

  private reply(id: FrameId | null, answered: Answer): void {
    this.send(replyFrameText(id, answered));
  }

  /** Everything that is ready in the same turn goes out in one frame. */
  private send(text: string): void {
    if (this.isOver) return;
    this.outbox.push(text);
    this.outboxBytes += text.length;
    if (this.outboxBytes >= frameBytesAim) return this.flush();
    if (this.flushIsSet) return;
    this.flushIsSet = true;
    queueMicrotask(() => {
      this.flushIsSet = false;
      this.flush();
    });
  }

  private flush(): void {
    if (this.outbox.length === 0 || this.isOver) return;
    const frame = joinFrames(this.outbox);
    this.outbox = [];
    this.outboxBytes = 0;
    if (this.socket.bufferedAmount > bufferedBytesMax) {
      this.service.counts.refuse("slow_reader");
      this.socket.close(1013, "slow_reader");
      this.socket.terminate();
      return this.end();
    }
    this.socket.send(frame);
    this.slowReaders.wrote(frame.length);
  }

  /** The server is stopping: what is under way is still answered, and then the connection is closed. */
  goAway(): void {
    this.flush();
    this.socket.close(1001, "shutting_down");
  }

  end(): void {
    this.isOver = true;
    for (const drop of this.holds.values()) drop();
    for (const stop of this.subscriptions.values()) stop();
    this.holds.clear();
    this.subscriptions.clear();
  }
}

const tooManySubscriptions = `A connection may have ${subscriptionsMax} subscriptions; ask for more in one of them, or open another connection.`;
