/**
 * JSON in ASCII only; other characters are written as \uXXXX. A text that is hashed must be the same bytes wherever it is
 * stored, and in ASCII no decoder can repair a damaged byte, so that it is always found.
 */
import { isoTime } from "../protocol/schema/text.ts";

/** Checking each character is faster for short texts only. */
const shortText = 48;

export function quoted(text: string): string {
  if (text.length > shortText) return asciiJson(text);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return asciiJson(text);
  }
  return `"${text}"`;
}

/** Any JSON value; anything else cannot have come from outside, and is written as null. */
export function asciiJson(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  // In UTF-8 only ASCII has one byte a character, and comparing the lengths is the fastest check.
  return Buffer.byteLength(text) === text.length ? text : text.replace(beyondAscii, escaped);
}

const beyondAscii = /[\u0080-\uffff]/g;

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Null if the text is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const calendarMs = 8.64e15;

/** ISO 8601 in UTC, as on the wire. A time beyond the range of JavaScript's Date stays a number: nothing is lost. */
export function timeOf(ms: number): string | number {
  return Number.isInteger(ms) && Math.abs(ms) <= calendarMs ? isoTime(ms) : ms;
}

export function readTime(value: unknown): number {
  return typeof value === "string" ? Date.parse(value) : Number(value);
}
