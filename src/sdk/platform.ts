/** What this platform has: Node's own sockets, which cost a fraction of fetch and WebSocket, and the end of a turn. */

type NodeWires = typeof import("./node/wires.ts");

interface ProcessLike {
  readonly versions?: { readonly node?: string; readonly bun?: string };
  readonly env?: { readonly NODE_USE_ENV_PROXY?: string };
  readonly execArgv?: readonly string[];
  nextTick?(run: () => void): void;
}

const { process: host, Deno } = globalThis as { process?: ProcessLike; Deno?: unknown };
let loading: Promise<NodeWires> | null = null;

/** Null on other platforms, and where the user has Node send requests through a proxy, which only its fetch knows. */
export function nodeWires(): Promise<NodeWires> | null {
  if (host?.versions?.node === undefined || host.versions.bun !== undefined || Deno !== undefined) return null;
  if (host.env?.NODE_USE_ENV_PROXY === "1" || host.execArgv?.includes("--use-env-proxy") === true) return null;
  loading ??= import("./node/wires.ts");
  return loading;
}

const tick = host?.nextTick?.bind(host);

/**
 * Runs when all that this turn of the event loop has set off is done, as far as the platform can say. Under Node a tick that
 * is asked for by a promise's reaction comes after all reactions (one that a tick asks for comes before them); elsewhere it
 * is the next of them.
 */
export const atEndOfTurn: (run: () => void) => void =
  tick === undefined ? queueMicrotask : (run) => queueMicrotask(() => tick(run));

/** After all that runs at the end of the turn, and what that has set off: what the wire sends then is all there is. */
export function lastInTurn(run: () => void): void {
  atEndOfTurn(() => atEndOfTurn(run));
}

/** Settles in a later turn: what this one sends has left by then. */
export function afterTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === "function") setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}
