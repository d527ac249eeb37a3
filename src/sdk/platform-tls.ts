/**
 * `fetch` and WebSocket with certificates of the caller's own. Node's take a dispatcher, and its class is that of the
 * global one, which Node keeps under a symbol that it shares with the undici package. Browsers have their own
 * certificates, and nothing to be given.
 */
import type { ClientTls } from "../trust/client-tls.ts";
import { TrustProblem } from "../trust/loopback.ts";
import type { Fetch } from "./http.ts";

/** Given to `fetch` and to `new WebSocket` as `dispatcher`. */
export type Dispatcher = object;

type DispatcherClass = new (options: { readonly connect: ClientTls }) => Dispatcher;

/** The newer one first: where both are there, the older is a wrapper around it. */
const globalSymbols = [Symbol.for("undici.globalDispatcher.2"), Symbol.for("undici.globalDispatcher.1")];

export function createDispatcher(tls: ClientTls): Dispatcher {
  // Node makes the global dispatcher when `fetch` is first looked at.
  void Response;
  void fetch;
  const shared = globalThis as unknown as Readonly<Record<symbol, object | undefined>>;
  const found = globalSymbols.map((symbol) => shared[symbol]).find((one) => one !== undefined);
  if (found === undefined) {
    throw new TrustProblem("this platform takes no certificates for one client; set NODE_EXTRA_CA_CERTS instead");
  }
  return new (found.constructor as DispatcherClass)({ connect: tls });
}

export function fetchThrough(dispatcher: Dispatcher): Fetch {
  return (input, init) => fetch(input, { ...init, dispatcher } as RequestInit);
}
