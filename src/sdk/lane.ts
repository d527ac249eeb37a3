/**
 * The connections of one set of credentials. Calls begin over HTTP; when many are in flight at once a stream is opened
 * beside it, and takes over as soon as it is up. If it cannot be opened or is cut, HTTP goes on.
 */

import type { ClientTls } from "../trust/client-tls.ts";
import { createHttpWire, type Fetch } from "./http.ts";
import { canStream, commandCharsMax, inFlightMax, Stream } from "./stream.ts";
import { limited } from "./timing.ts";
import { type Credentials, exchange, type Outgoing, type Wire } from "./transport.ts";

export type Transport = "auto" | "http" | "stream";

/** From this many calls in flight a stream pays. */
const manyInFlight = 8;
/** After a stream that could not be opened, how long HTTP is used before the next attempt. */
const noStreamMs = 10_000;
const probeMs = 1_000;
const probesMax = 4;

export interface LaneOptions {
  readonly url: string;
  readonly credentials: Credentials;
  readonly transport: Transport;
  /** The caller's own; null: the platform's. */
  readonly fetch: Fetch | null;
  /** With certificates of the client's own; null: the platform's. */
  readonly tls: ClientTls | null;
}

export class Lane {
  private readonly options: LaneOptions;
  private readonly http: Wire;
  private readonly mayStream: boolean;
  private stream: Stream | null = null;
  private noStreamUntil = 0;
  private inFlight = 0;
  private clearing: Promise<void> | null = null;

  constructor(options: LaneOptions) {
    const { url, credentials, transport } = options;
    this.options = options;
    this.mayStream = transport !== "http" && canStream(credentials);
    this.http = createHttpWire({ url, credentials, fetch: options.fetch, tls: options.tls });
  }

  /** Followed by `left`, when it is over. */
  send(call: LaneCall): void {
    this.inFlight++;
    const stream = this.streamFor();
    const text = stream === null ? "" : JSON.stringify(call.input);
    if (stream === null || text.length > commandCharsMax) {
      call.stream = null;
      this.http.send(call);
    } else {
      call.stream = stream;
      stream.send(call, text);
    }
  }

  drop(call: LaneCall, isLate: boolean): void {
    (call.stream ?? this.http).drop(call, isLate);
  }

  left(): void {
    this.inFlight--;
  }

  /**
   * After a call that was not answered in time. What a partition left dead is not only the connection of that call: the
   * platform keeps others, and would take one of them next. So short questions are asked until one is answered; each
   * that is not takes its connection with it.
   */
  clear(signal: AbortSignal | undefined): Promise<void> {
    this.clearing ??= this.probe(signal).finally(() => {
      this.clearing = null;
    });
    return this.clearing;
  }

  private async probe(signal: AbortSignal | undefined): Promise<void> {
    for (let count = 0; count < probesMax && signal?.aborted !== true; count++) {
      const limit = limited(probeMs, signal);
      try {
        await exchange(this.http, "healthz", {}, limit.signal);
        return;
      } catch {
        // Dropped, with its connection.
      } finally {
        limit.stop();
      }
    }
  }

  /** Over which of the two the next call would go. */
  get isStreaming(): boolean {
    return this.stream?.isOpen === true;
  }

  close(): void {
    this.stream?.close();
  }

  private streamFor(): Stream | null {
    if (!this.mayStream) return null;
    if (this.options.transport === "stream") return this.opened();
    if (this.inFlight > manyInFlight && this.stream === null && performance.now() >= this.noStreamUntil) this.opened();
    const { stream } = this;
    return stream?.isOpen === true && stream.inFlight < inFlightMax ? stream : null;
  }

  private opened(): Stream {
    if (this.stream !== null) return this.stream;
    const { url, credentials, tls } = this.options;
    const stream = new Stream(url, credentials, tls, () => {
      if (this.stream === stream) this.stream = null;
    });
    this.stream = stream;
    stream.opened.then((isUp) => {
      if (!isUp) this.noStreamUntil = performance.now() + noStreamMs;
    });
    return stream;
  }
}

export interface LaneCall extends Outgoing {
  /** That it went over; null: over HTTP. */
  stream: Stream | null;
}
