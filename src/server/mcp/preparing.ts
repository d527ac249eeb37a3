/**
 * What the first call of MCP would otherwise load, and the whole loop with it, for a fifth of a second: loaded after the start,
 * in pieces, with turns of the loop in between. Before the start it would add a sixth to the time until the server listens.
 */
import { setTimeout } from "node:timers/promises";

/** The SDK itself is the largest: 60 ms, once, in the first second after the start. */
const pieces: readonly (() => Promise<unknown>)[] = [
  () => import("@modelcontextprotocol/server"),
  () => import("../../mcp/tools.ts"),
  () => import("../../mcp/endpoint.ts"),
  async () => (await import("@modelcontextprotocol/server")).preloadSchemas(),
];
const betweenPiecesMs = 20;

export async function prepareMcp(): Promise<void> {
  for (const piece of pieces) {
    await piece();
    await setTimeout(betweenPiecesMs, undefined, { ref: false });
  }
}
