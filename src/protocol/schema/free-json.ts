/** Bounds JSON of a caller's own making, where no schema does: how deep it nests, and what its texts and keys hold. */

import { type Fault, unsafeKeys } from "./explain.ts";
import { limits } from "./limits.ts";
import { isStorable } from "./text.ts";

/** Walks without recursion: what it guards against is just what would end the stack. */
export function findJsonFault(value: unknown, field: string): Fault | null {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    const below: unknown[] = [];
    for (const item of level) {
      if (!isStorable(item)) return textFault(field);
      if (typeof item !== "object" || item === null) continue;
      if (depth === limits.jsonDepthMax) {
        return {
          code: "invalid_request",
          field,
          detail: `${field} nests deeper than ${limits.jsonDepthMax} levels; flatten it.`,
        };
      }
      for (const [key, inner] of Object.entries(item)) {
        if (unsafeKeys.includes(key)) {
          return {
            code: "invalid_request",
            field,
            detail: `${field} has the key "${key}", which cannot be stored safely; rename it.`,
          };
        }
        if (!isStorable(key)) return textFault(field);
        below.push(inner);
      }
    }
    level = below;
  }
  return null;
}

function textFault(field: string): Fault {
  return {
    code: "invalid_request",
    field,
    detail: `${field} holds U+0000 or half of a surrogate pair; send text without.`,
  };
}
