/**
 * The connections of one set of credentials. Calls begin over HTTP; when many are in flight at once a stream is opened
 * beside it, and takes over as soon as it is up. If it cannot be opened or is cut, HTTP goes on.
 */
import { createHttpWire, type Fetch } from "./http.ts";
import { holdMsOf, type OperationName } from "./idempotency.ts";
import type { Dispatcher } from "./platform-tls.ts";
import { canStream, commandCharsMax, inFlightMax, Stream } from "./stream.ts";
import { limited } from "./timing.ts";
import type { Credentials, Wire, WireReply } from "./transport.ts";

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
  readonly fetch: Fetch;
  /** With certificates of the client's own; null: the platform's. */
  readonly dispatcher: Dispatcher | null;
}

export class Lane implements Wire {
  private readonly options: LaneOptions;
  private readonly http: Wire;
  private stream: Stream | null = null;
  private noStreamUntil = 0;
  private inFlight = 0;
  private clearing: Promise<void> | null = null;

  constructor(options: LaneOptions) {
    this.options = options;
    this.http = createHttpWire(options.url, options.credentials, options.fetch);
  }

  /**
   * A held call is given up over HTTP by closing its connection, which the server notices; on the stream it would not.
   * So it only goes there when its caller says that it cleans up (`mayHold`).
   */
  async send(name: OperationName, input: object, signal: AbortSignal, mayHold = true): Promise<WireReply> {
    this.inFlight++;
    try {
      return await this.wireFor(input, mayHold).send(name, input, signal);
    } finally {
      this.inFlight--;
    }
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
        await this.http.send("healthz", {}, limit.signal);
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

  private wireFor(input: object, mayHold: boolean): Wire {
    const { transport } = this.options;
    if (transport === "http" || !canStream(this.options.credentials)) return this.http;
    if (!mayHold && holdMsOf(input) > 0) return this.http;
    if (transport === "stream") return this.fits(input) ? this.opened() : this.http;
    if (this.inFlight >= manyInFlight && this.stream === null && performance.now() >= this.noStreamUntil) this.opened();
    const { stream } = this;
    return stream?.isOpen === true && stream.inFlight < inFlightMax && this.fits(input) ? stream : this.http;
  }

  private opened(): Stream {
    if (this.stream !== null) return this.stream;
    const { url, credentials, dispatcher } = this.options;
    const stream = new Stream(url, credentials, dispatcher, () => {
      if (this.stream === stream) this.stream = null;
    });
    this.stream = stream;
    stream.opened.then((isUp) => {
      if (!isUp) this.noStreamUntil = performance.now() + noStreamMs;
    });
    return stream;
  }

  /** Only digests are ever large; the others are not measured twice. */
  private fits(input: object): boolean {
    return !("context" in input || "payload" in input) || JSON.stringify(input).length <= commandCharsMax;
  }
}
