/** From the bytes of a body to what JSON.parse gives. What the fields mean is the schemas' affair. */
import { isUtf8 } from "node:buffer";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import { Refused } from "../answering/faults.ts";

/** Nothing at all is the same as `{}`. Own keys named `__proto__` stay own keys here, and are unknown fields later. */
export function parseBody(contentType: string | undefined, bytes: Buffer): unknown {
  if (contentType !== "application/json" && !isJsonInUtf8(contentType)) throw new Refused(notJson);
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw new Refused(notUtf8);
  try {
    return JSON.parse(bytes.toString()) as unknown;
  } catch {
    throw new Refused(malformed);
  }
}

function isJsonInUtf8(contentType = ""): boolean {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  if (type.trim() !== "application/json") return false;
  return parameters.every((parameter) => /^\s*(charset\s*=\s*"?utf-?8"?)?\s*$/.test(parameter));
}

export const notJson = errorAnswer(
  "unsupported_media_type",
  "The body is not said to be JSON in UTF-8; send `Content-Type: application/json`, and no Content-Encoding.",
);
const notUtf8 = errorAnswer("invalid_request", "The body is not UTF-8; send JSON in UTF-8.");
const malformed = errorAnswer("invalid_request", "The body is not JSON; send one JSON object.");
