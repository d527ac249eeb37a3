/** What a server answers instead of opening a cell's connection. */
import type { IncomingMessage } from "node:http";
import type { ConnectionEnd } from "./connection.ts";
import { readAll } from "./pump.ts";

const bodyBytesMax = 16_384;

export async function readRefusal(response: IncomingMessage): Promise<ConnectionEnd> {
  const status = response.statusCode ?? 0;
  // What is too long or breaks off is not an answer of ours.
  const detail = await readAll(response, bodyBytesMax, "too long").then(detailOf, () => null);
  switch (status) {
    case 401:
    case 403:
      return { refusal: "not_allowed", reason: `it refuses the key: ${detail ?? `status ${status}`}` };
    case 404:
      return { refusal: "not_allowed", reason: "it knows nothing of cells; is it a Leasehold server of this version?" };
    default:
      return { refusal: "none", reason: detail ?? `it answers with status ${status}` };
  }
}

function detailOf(text: string): string | null {
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown };
    return typeof detail === "string" ? detail : null;
  } catch {
    return null;
  }
}
