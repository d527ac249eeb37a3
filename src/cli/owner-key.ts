/** The owner's token (S5), for commands that speak to the server by themselves and not by the SDK. */
import { type IncomingMessage, type RequestOptions, request as requestPlainly } from "node:http";
import { request as requestSecurely } from "node:https";
import type { ClientTls } from "../trust/client-tls.ts";
import { findProvedOwner, proofHeader } from "../trust/owner-token.ts";
import type { Environment } from "./command.ts";

const answerMs = 5_000;

/** The key that was given, or that of the server's owner; and the address that it is for. */
export async function keyFor(
  { url, key }: { readonly url: string; readonly key: string | null },
  tls: ClientTls | null,
  environment: Environment,
): Promise<{ readonly url: string; readonly key: string | null }> {
  if (key !== null) return { url, key };
  const owner = await findProvedOwner(url, environment, async (address, headers) => {
    const response = await send(new URL(address), { headers, signal: AbortSignal.timeout(answerMs) }, tls);
    return response.resume().headers[proofHeader];
  });
  return owner === null ? { url, key } : { url: owner.url, key: owner.token };
}

export function send(url: URL, options: RequestOptions, tls: ClientTls | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const isSecure = url.protocol === "https:";
    const sent = isSecure
      ? requestSecurely(url, { ...options, ...tls }, resolve)
      : requestPlainly(url, options, resolve);
    sent.on("error", reject);
    sent.end();
  });
}
