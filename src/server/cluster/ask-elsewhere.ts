/**
 * An operation that came over a stream or MCP, or in the midst of other work, and that another shard decides: it is sent there
 * over HTTP, as its caller. Nobody has the caller's secret here; a session that stands for the same key is made for the one
 * request.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { type Answer, answerJson } from "../../protocol/answers/answer.ts";
import type { ErrorCode } from "../../protocol/answers/errors.ts";
import type { Input, Operation } from "../../protocol/operation.ts";
import { tenantHeader } from "../auth/authenticate.ts";
import { csrfHeader, type Sessions } from "../auth/sessions.ts";
import { type HandOver, passedOnHeader } from "../http/hand-over.ts";
import type { Caller } from "../service.ts";

export interface Asking {
  readonly leaderUrl: string;
  readonly shard: number;
  readonly handOver: HandOver;
  readonly sessions: Sessions;
  /** The certificates that a leader's is checked against, beside the usual ones. */
  readonly ca: string | null;
}

const answerMsMax = 30_000;

export function askElsewhere(asking: Asking, operation: Operation, input: Input, caller: Caller): Promise<Answer> {
  const { leaderUrl, shard, handOver, ca } = asking;
  const { method } = operation;
  const { path, body } = sent(operation, input);
  const url = new URL(path, leaderUrl);
  const shown = sessionFor(asking.sessions, caller);
  const said = handOver.say({ method, url: path, headers: shown }, caller.address ?? "", shard);
  const headers = {
    ...shown,
    [passedOnHeader]: said,
    [tenantHeader]: caller.tenant,
    ...(body !== null && { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
  };
  const options = { method, headers, agent: false, timeout: answerMsMax, ...(ca !== null && { ca }) } as const;
  return new Promise((resolve, reject) => {
    const take = (answer: IncomingMessage): void => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () => resolve(answerOf(answer, Buffer.concat(parts).toString())));
    };
    const sending = url.protocol === "https:" ? httpsRequest(url, options, take) : httpRequest(url, options, take);
    sending.on("timeout", () => sending.destroy(new Error("the leader of the other shard does not answer")));
    sending.on("error", reject);
    sending.end(body ?? undefined);
  });
}

/** Without keys nobody shows one, here or there. */
function sessionFor(sessions: Sessions, { secret }: Caller): Readonly<Record<string, string>> {
  if (secret === null) return {};
  const [cookie = ""] = sessions.begin(secret, false).split(";", 1);
  const found = sessions.find(cookie);
  return found === null || found === false ? {} : { cookie, [csrfHeader]: found.csrf ?? "" };
}

function sent({ path: pattern, params, body }: Operation, input: Input) {
  const inPath = new Set(Object.keys(params.properties));
  const path = pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input[name])));
  const rest = Object.entries(input).filter(
    ([name, value]) => !inPath.has(name) && value !== undefined && value !== null,
  );
  if (body !== null) return { path, body: JSON.stringify(Object.fromEntries(rest)) };
  const query = rest.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
  return { path: query === "" ? path : `${path}?${query}`, body: null };
}

function answerOf({ statusCode = 502, headers }: IncomingMessage, text: string): Answer {
  const value = (text === "" ? {} : JSON.parse(text)) as { readonly error?: ErrorCode };
  const retryAfter = headers["retry-after"] === undefined ? null : Number(headers["retry-after"]);
  return { ...answerJson(statusCode, value), code: value.error ?? null, retryAfter };
}
