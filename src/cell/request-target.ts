/**
 * The target of a request in one form: what is checked is what a service is sent (G14). Programs disagree about dot
 * segments, backslashes, parameters and text that is encoded twice; what one of them would read as another path is
 * refused.
 */
import { isPlainPath } from "../token/index.ts";

export interface RequestTarget {
  /** In RFC 3986's normal form, to be forwarded. */
  readonly path: string;
  /** With its question mark; empty if there is none. */
  readonly query: string;
  /** Decoded, to be compared with a path caveat; null where two services could take it for two paths. */
  readonly plain: string | null;
}

/** Nothing to decode, and no segment that begins with a dot. */
const ordinary = /^(?:\/[\w~!$&'()*+,=:@-][\w~!$&'()*+,=:@.-]*)+\/?$/;
const encodedOrRaw = /%[0-9A-Fa-f]{2}|[%"<>^`{|}\x80-\xff]/g;
const unreserved = /^[\w.~-]$/;
/** A path that is still encoded after this many rounds is not meant for a service. */
const roundsMax = 4;

/** null: not the path of a request in origin form, or one that leads elsewhere for some service. */
export function readTarget(url: string): RequestTarget | null {
  const at = url.indexOf("?");
  const raw = at < 0 ? url : url.slice(0, at);
  const query = at < 0 ? "" : url.slice(at);
  // Absolute forms and // name another host.
  if (!raw.startsWith("/") || raw.startsWith("//") || url.includes("#")) return null;
  if (raw === "/" || ordinary.test(raw)) return { path: raw, query, plain: withoutLastSlash(raw) };
  const path = normalise(raw);
  const decoded = path === null ? null : decodedSafely(path);
  if (path === null || decoded === null) return null;
  const isClear = !/%2F/.test(path) && !decoded.includes("%") && isPlainPath(withoutLastSlash(decoded));
  return { path, query, plain: isClear ? withoutLastSlash(decoded) : null };
}

/** The path of a request where a folder is not asked for by a slash at its end; null where it has no plain form. */
export function plainPathOf(url: string): string | null {
  const target = readTarget(url);
  return target === null || (target.path !== "/" && target.path.endsWith("/")) ? null : target.plain;
}

export function queryOf(url: string): URLSearchParams {
  const at = url.indexOf("?");
  return new URLSearchParams(at < 0 ? "" : url.slice(at + 1));
}

/** Letters, digits and - . _ ~ are not encoded, everything else outside a path's characters is, in upper case. */
function normalise(raw: string): string | null {
  let isBroken = false;
  const path = raw.replace(encodedOrRaw, (found) => {
    if (found === "%") isBroken = true;
    const code = found.length === 3 ? Number.parseInt(found.slice(1), 16) : found.charCodeAt(0);
    const character = String.fromCharCode(code);
    return unreserved.test(character) ? character : `%${code.toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return isBroken ? null : path;
}

/** The path decoded once; null if that, or any further decoding, leads to another place or to a control character. */
function decodedSafely(path: string): string | null {
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // Broken UTF-8, overlong forms of a dot or a slash included.
    return null;
  }
  if (isAstray(path) || isAstray(decoded)) return null;
  let text = decoded;
  for (let round = 0; round < roundsMax; round++) {
    const next = text.replace(/%[0-9A-Fa-f]{2}/g, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
    if (next === text) return decoded;
    if (isAstray(next)) return null;
    text = next;
  }
  return null;
}

/** Dot segments, with parameters (`..;x`) and spaces that some services cut off; backslashes and controls. */
function isAstray(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x7f || code === 0x5c) return true;
  }
  return text.split("/").some((segment) => /^\.{1,2} *(?:;|$)/.test(segment));
}

function withoutLastSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}
