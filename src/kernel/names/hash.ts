/** Hashes for the maps of index/, computed in place while a text is read. */
import { randomFrom } from "../contract/ids.ts";

/** FNV-1a, for texts of any kind. */
export function textHash(text: string): number {
  let hash = hashStart;
  for (let at = 0; at < text.length; at++) hash = hashNext(hash, text.charCodeAt(at));
  return hash;
}

export const hashStart = 0x811c9dc5 | 0;

export function hashNext(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193);
}

/** Ids of contract/ids.ts end in random characters; those are hash enough. */
export function idHash(id: string): number {
  let hash = hashStart;
  for (let at = randomFrom; at < id.length; at++) hash = hashNext(hash, id.charCodeAt(at));
  return hash;
}
