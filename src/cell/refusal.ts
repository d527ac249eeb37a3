/** What a server answers instead of opening a cell's connection. */
import type { IncomingMessage } from "node:http";
import type { ConnectionEnd } from "./connection.ts";

const bodyLengthMax = 16_384;

export async function readRefusal(response: IncomingMessage): Promise<ConnectionEnd> {
  const status = response.statusCode ?? 0;
  const detail = detailOf(await readText(response));
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

async function readText(response: IncomingMessage): Promise<string> {
  let text = "";
  try {
    for await (const chunk of response.setEncoding("utf8")) {
      text += String(chunk);
      if (text.length > bodyLengthMax) break;
    }
  } catch {
    // What came before the break is all there is.
  }
  return text;
}

function detailOf(text: string): string | null {
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown };
    return typeof detail === "string" ? detail : null;
  } catch {
    return null;
  }
}
