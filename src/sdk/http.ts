/** Calls over HTTP: one request each, on connections that are kept open between them. */

import type { ClientTls } from "../trust/client-tls.ts";
import { broken, replyOf, requestFor } from "./http-form.ts";
import { nodeWires } from "./platform.ts";
import { createDispatcher, fetchThrough } from "./platform-tls.ts";
import { type Credentials, headersFor, type Outgoing, type Wire, WireBroken, type WireReply } from "./transport.ts";

export type Fetch = typeof fetch;

export interface HttpWireOptions {
  readonly url: string;
  readonly credentials: Credentials;
  /** The caller's own; null: the platform's. */
  readonly fetch: Fetch | null;
  readonly tls: ClientTls | null;
}

/** Under Node by its sockets, which costs a tenth of what its fetch does (decision 0032); elsewhere by fetch. */
export function createHttpWire(options: HttpWireOptions): Wire {
  const headers = headersFor(options.credentials);
  const loading = options.fetch === null ? nodeWires() : null;
  if (loading === null) return new FetchWire(options.url, headers, options.fetch ?? platformFetch(options.tls));
  return new LoadedWire(loading.then(({ createNodeHttp }) => createNodeHttp({ ...options, headers })));
}

function platformFetch(tls: ClientTls | null): Fetch {
  return tls === null ? fetch : fetchThrough(createDispatcher(tls));
}

/** Waits for the module that has Node's part. */
class LoadedWire implements Wire {
  private wire: Wire | null = null;
  private readonly loading: Promise<Wire>;

  constructor(loading: Promise<Wire>) {
    this.loading = loading.then((wire) => {
      this.wire = wire;
      return wire;
    });
    this.loading.catch(() => undefined);
  }

  send(call: Outgoing): void {
    if (this.wire !== null) return this.wire.send(call);
    let isDropped = false;
    call.giveUp = () => {
      isDropped = true;
    };
    this.loading.then(
      (wire) => {
        call.giveUp = null;
        if (!isDropped) wire.send(call);
      },
      (error: unknown) => call.broken(new WireBroken("this platform has no sockets", false, error)),
    );
  }

  drop(call: Outgoing): void {
    call.giveUp?.();
  }
}

class FetchWire implements Wire {
  private readonly url: string;
  private readonly plain: Readonly<Record<string, string>>;
  private readonly withBody: Readonly<Record<string, string>>;
  private readonly fetcher: Fetch;

  constructor(url: string, headers: Readonly<Record<string, string>>, fetcher: Fetch) {
    this.url = url;
    this.plain = headers;
    this.withBody = { ...headers, "content-type": "application/json" };
    this.fetcher = fetcher;
  }

  send(call: Outgoing): void {
    const controller = new AbortController();
    call.giveUp = () => controller.abort();
    call.isSent = true;
    this.exchange(call, controller.signal).then(
      (reply) => controller.signal.aborted || call.answered(reply),
      (error: unknown) => controller.signal.aborted || call.broken(broken(error)),
    );
  }

  drop(call: Outgoing): void {
    call.giveUp?.();
  }

  private async exchange({ name, input }: Outgoing, signal: AbortSignal): Promise<WireReply> {
    const { plain, withBody, fetcher } = this; // A browser's fetch refuses to be called as a method.
    const { method, path, body } = requestFor(name, input);
    const sent = body === null ? { method, signal, headers: plain } : { method, signal, headers: withBody, body };
    const response = await fetcher(`${this.url}${path}`, sent);
    return replyOf(response.status, await response.text(), response.headers.get("retry-after"));
  }
}
