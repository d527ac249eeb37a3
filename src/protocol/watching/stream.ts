/**
 * The frames of the WebSocket stream. A client sends `{id, op, input}`, one or an array of them; it is answered with
 * `{id, status, body}` and gets events as `{seq, event}`, again one or an array. Texts are joined, never parsed again.
 */
import { type Answer, bodyText } from "../answers/answer.ts";
import type { Fault } from "../schema/explain.ts";
import { limits } from "../schema/limits.ts";

/**
 * `{id, op: "drop"}` gives up the command with this id: one that is held (`hold_ms`) is answered no more, as if its client
 * had gone. One that is answered already, or cannot be held, is not affected.
 */
export const dropOp = "drop";

/** The client's own name for a command; its reply carries it back. */
export type FrameId = string | number;

export interface StreamCommand {
  readonly type: "command";
  readonly id: FrameId;
  /** The name of an operation. */
  readonly op: string;
  /** Not checked yet. */
  readonly input: unknown;
}
export interface StreamFault {
  readonly type: "fault";
  /** null where the id itself is bad. */
  readonly id: FrameId | null;
  readonly fault: Fault;
}

/** What a parsed frame holds. A bad command costs its own answer, not those of the others in the frame. */
export function readFrame(frame: unknown): readonly (StreamCommand | StreamFault)[] {
  if (!Array.isArray(frame)) return [readCommand(frame)];
  if (frame.length === 0) return [wrong(null, "", "The frame is empty; send a command, or an array of them.")];
  if (frame.length > limits.frameCommandsMax) {
    return [wrong(null, "", `The frame has ${frame.length} commands; send at most ${limits.frameCommandsMax}.`)];
  }
  return frame.map(readCommand);
}

const fields: readonly string[] = ["id", "op", "input"];

function readCommand(value: unknown): StreamCommand | StreamFault {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return wrong(null, "", "A command is an object with id, op and input.");
  }
  const { id, op, input } = value as { readonly id?: unknown; readonly op?: unknown; readonly input?: unknown };
  if (!isFrameId(id)) {
    return wrong(
      null,
      "id",
      `id is missing or odd; send an integer, or a string of 1 to ${limits.frameIdLengthMax} characters.`,
    );
  }
  if (typeof op !== "string") return wrong(id, "op", "op is missing; send the name of an operation.");
  for (const key in value) {
    if (!fields.includes(key))
      return wrong(id, key.slice(0, limits.idLengthMax), "A command has id, op and input only; leave the rest out.");
  }
  return { type: "command", id, op, input: input ?? {} };
}

function isFrameId(id: unknown): id is FrameId {
  if (typeof id === "string") return id.length > 0 && id.length <= limits.frameIdLengthMax;
  return Number.isSafeInteger(id);
}

function wrong(id: FrameId | null, field: string, detail: string): StreamFault {
  return { type: "fault", id, fault: { code: "invalid_request", field, detail } };
}

/** What has no body over HTTP (204) has null here. */
export function replyFrameText(id: FrameId | null, answer: Answer): string {
  const { status } = answer;
  const body = status === 204 ? "null" : bodyText(answer);
  return `{"id":${typeof id === "number" ? id : JSON.stringify(id)},"status":${status},"body":${body}}`;
}

/** `event` is text already, from `eventText`. */
export function eventFrameText(sequence: number, event: string): string {
  return `{"seq":${sequence},"event":${event}}`;
}

/** One frame for all that is ready to go. */
export function joinFrames(texts: readonly string[]): string {
  const [first = "[]"] = texts;
  return texts.length === 1 ? first : `[${texts.join(",")}]`;
}
