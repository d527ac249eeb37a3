/** From a path that a tool is about to touch to the name that is leased: where it really leads, and in which checkout. */
import type { Stats } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { findRepository, type Repository } from "../names/repository.ts";

const { lstatSync, readlinkSync, realpathSync } = process.getBuiltinModule("node:fs");

export interface Target {
  /** Where the path really leads; a pattern where the name is one. */
  readonly path: string;
  readonly resource: string;
  readonly repository: Repository;
}

/** A path outside every repository: no other checkout has the same name for it, so it is reported and not guarded. */
export interface Outside {
  readonly path: string;
  readonly resource: null;
}

export interface TargetOptions {
  /** The path and all below it. */
  readonly isTree?: boolean;
  /** The link itself is meant, and not what it leads to: it is deleted or renamed. */
  readonly isLink?: boolean;
}

/** As the kernel has them (C3); a test compares the two. */
export const nameLengthMax = 1_024;
export const nameSegmentsMax = 64;
const linksMax = 40;

export function targetOf(
  path: string,
  cwd: string,
  { isTree = false, isLink = false }: TargetOptions = {},
): Target | Outside {
  const full = resolve(cwd, path);
  const real = isLink ? join(realPath(dirname(full)), basename(full)) : realPath(full);
  const repository = findRepository(isFolder(real) ? real : dirname(real));
  if (repository === null) return { path: real, resource: null };
  // `/tmp` may itself be a link, and a repository found from a real path has a real root.
  const inside = relative(repository.root, real);
  const segments = inside === "" ? [] : inside.split(sep);
  return { path: real, resource: resourceOf(repository.name, segments, isTree || inside === ""), repository };
}

export function isOutside(target: Target | Outside): target is Outside {
  return target.resource === null;
}

/** What cannot be said as a name is leased with the nearest folder that can, and all that is in it. */
function resourceOf(name: string, segments: readonly string[], isTree: boolean): string {
  const plain = segments.map((segment) => segment.normalize("NFC"));
  const bad = plain.findIndex((segment) => !isNameable(segment));
  const kept = bad === -1 ? plain : plain.slice(0, bad);
  let whole = isTree || bad !== -1;
  for (;;) {
    const text = `FILE:/${[name, ...kept, ...(whole ? ["**"] : [])].join("/")}`;
    if (text.length <= nameLengthMax && kept.length + 2 <= nameSegmentsMax) return text;
    kept.pop();
    whole = true;
  }
}

/** What C3 refuses; `*` and `?` in a file's name make a pattern that covers it, which errs on the safe side. */
function isNameable(segment: string): boolean {
  return !/[\\\p{Cc}\p{Cs}\p{Cn}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]/u.test(segment);
}

/** With all links followed, as far as there is something; what is not there yet keeps its name. */
function realPath(path: string, depth = 0): string {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path);
    if (parent === path || depth > linksMax) return path;
    const link = linkOf(path);
    if (link !== null) return realPath(resolve(realPath(parent, depth + 1), link), depth + 1);
    return join(realPath(parent, depth), basename(path));
  }
}

/** A link whose end is not there: writing to it makes that. */
function linkOf(path: string): string | null {
  return statsOf(path)?.isSymbolicLink() === true ? readlinkSync(path) : null;
}

export function isFolder(path: string): boolean {
  return statsOf(path)?.isDirectory() === true;
}

/** Of the path itself, not of what it links to; null where nothing can be seen. */
export function statsOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

/** Whether a leased name, which may be a pattern (C4), covers the name of one file. Linear in their product, no backtracking. */
export function covers(pattern: string, name: string): boolean {
  return matches(pattern.split("/"), name.split("/"), (part, text) =>
    matches([...part], [...text], (a, b) => a === "?" || a === b, "*"),
  );
}

/** `deep` matches any number of what follows; at the end of a path, `/d/**` is `/d` as well. */
function matches(
  pattern: readonly string[],
  text: readonly string[],
  isOne: (part: string, text: string) => boolean,
  deep = "**",
): boolean {
  let reached = Array.from({ length: text.length + 1 }, (_, at) => at === 0);
  for (const part of pattern) {
    const next: boolean[] = [part === deep && reached[0] === true];
    for (let at = 0; at < text.length; at++) {
      next.push(
        part === deep
          ? reached[at + 1] === true || next[at] === true
          : reached[at] === true && isOne(part, text[at] ?? ""),
      );
    }
    reached = next;
  }
  return reached[text.length] === true;
}
