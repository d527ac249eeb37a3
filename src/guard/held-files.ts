/**
 * What the files that others hold look like. Where a tree cannot be compared as a whole (too many files, too slow a disk),
 * these are compared: whether a command wrote what another agent holds is known in a tree of any size.
 */
import { join } from "node:path";
import type { Repository } from "../names/repository.ts";
import type { Lease } from "../sdk/wire.ts";
import { covers } from "./targets.ts";
import { lookOf } from "./tree.ts";

const { readdirSync } = process.getBuiltinModule("node:fs");

export interface HeldLooks {
  /** By path from the root. */
  readonly files: Readonly<Record<string, string>>;
  /** False if others hold more files than were looked at. */
  readonly isWhole: boolean;
}

const filesMax = 5_000;

export function looksOf({ root, name }: Repository, leases: readonly Lease[]): HeldLooks {
  const files: Record<string, string> = {};
  let left = filesMax;
  const prefix = `FILE:/${name}/`;
  const look = (path: string): boolean => {
    if (left-- <= 0) return false;
    files[path] = lookOf(join(root, path));
    return true;
  };
  /** Folders are walked from the last one that a pattern names. */
  const walk = (folder: string, pattern: string): boolean => {
    for (const entry of entriesOf(join(root, folder))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (entry.name !== ".git" && !walk(path, pattern)) return false;
      } else if (covers(pattern, prefix + path) && !look(path)) return false;
    }
    return true;
  };
  const isWhole = leases.every(({ resource }) => {
    if (!resource.startsWith(prefix)) return true;
    const path = resource.slice(prefix.length);
    if (!/[*?]/.test(path)) return look(path);
    const segments = path.split("/");
    return walk(
      segments
        .slice(
          0,
          segments.findIndex((one) => /[*?]/.test(one)),
        )
        .join("/"),
      resource,
    );
  });
  return { files, isWhole };
}

/** The paths from the root that these leases name, up to the first pattern in each. */
export function placesOf({ name }: Repository, leases: readonly Lease[]): readonly string[] {
  const places = leases.map(({ resource }) => {
    const [, , ...segments] = resource.split("/");
    const pattern = segments.findIndex((one) => /[*?]/.test(one));
    return resource.startsWith(`FILE:/${name}/`)
      ? segments.slice(0, pattern === -1 ? undefined : pattern).join("/")
      : "";
  });
  return [...new Set(places.map((place) => (place === "" ? "." : place)))];
}

export function changedLooks(root: string, { files }: HeldLooks): readonly string[] {
  return Object.keys(files).filter((path) => files[path] !== lookOf(join(root, path)));
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
