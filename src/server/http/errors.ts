/** What goes wrong before a request is understood, in the words of the wire: never a 5xx for bad input, never a stack. */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { internalError, Refused } from "../answering/faults.ts";

interface Thrown {
  readonly code?: unknown;
  readonly statusCode?: unknown;
}

/** For what fastify reports, or a handler throws. Only what is nobody's input is a fault of the server. */
export function answerForError(error: unknown, log: { error(details: object, message: string): void }): Answer {
  if (error instanceof Refused) return error.answer;
  const { code, statusCode }: Thrown = typeof error === "object" && error !== null ? error : {};
  const known = typeof code === "string" ? byCode.get(code) : undefined;
  if (known !== undefined) return known;
  if (typeof statusCode === "number" && statusCode >= 400 && statusCode < 500) return unreadable;
  log.error({ err: error }, "a request failed for a reason that is not its own");
  return internalError;
}

/** For what the HTTP parser refuses. null: there is no client to answer. */
export function answerForParserError(error: { readonly code?: string }, socket: Socket): Answer | null {
  if (error.code === "ECONNRESET" || !socket.writable || hasBegunToAnswer(socket)) return null;
  return byCode.get(error.code ?? "") ?? unreadable;
}

/** Into the middle of an answer nothing else may be written. Node keeps what is under way on the socket. */
function hasBegunToAnswer(socket: Socket & { readonly _httpMessage?: ServerResponse | null }): boolean {
  return socket._httpMessage?.headersSent === true;
}

const tooLarge = errorAnswer(
  "payload_too_large",
  `The body is larger than ${limits.bodyBytesMax} bytes; send a smaller one, and split what can be split.`,
);
const wrongType = errorAnswer(
  "unsupported_media_type",
  "The body must be JSON; send `Content-Type: application/json`.",
);
const badPath = errorAnswer("invalid_request", "The path is not well-formed; percent-encode it as UTF-8.");
const headersTooLarge = errorAnswer(
  "headers_too_large",
  "The head of the request is too large; send fewer or shorter headers.",
);
const tooSlow = errorAnswer(
  "request_timeout",
  "The request did not arrive in time; send the whole of it more quickly.",
);
const unreadable = errorAnswer(
  "invalid_request",
  "This is not a well-formed HTTP/1.1 request; correct its head or its body's framing.",
);

/** By the codes of fastify, of Node's parser and of its timer. */
const byCode: ReadonlyMap<string, Answer> = new Map([
  ["FST_ERR_CTP_BODY_TOO_LARGE", tooLarge],
  ["FST_ERR_CTP_INVALID_MEDIA_TYPE", wrongType],
  ["FST_ERR_BAD_URL", badPath],
  ["HPE_HEADER_OVERFLOW", headersTooLarge],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", tooLarge],
  ["ERR_HTTP_REQUEST_TIMEOUT", tooSlow],
]);
