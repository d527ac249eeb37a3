/** The files that a patch changes, in the two forms that agents write: the apply_patch envelope, and a unified diff. */

/** Null for a text that names no file. */
export function patchPaths(text: string) {
  const changed: string[] = [];
  const deleted: string[] = [];
  const renamed: (readonly [string, string])[] = [];
  let from = "";
  for (const line of text.split(/\r?\n/)) {
    const [, verb, path = ""] = /^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$/.exec(line) ?? [];
    if (verb === "Delete File") deleted.push(path.trim());
    else if (verb === "Move to") {
      renamed.push([changed.pop() ?? "", path.trim()]);
    } else if (verb !== undefined) changed.push(path.trim());
    const [, sign, name = ""] = /^(---|\+\+\+) (?:[abciow]\/)?([^\t]+)/.exec(line) ?? [];
    if (sign === "---") from = name.trim();
    else if (sign === "+++") {
      const to = name.trim();
      if (to === "/dev/null") deleted.push(from);
      else changed.push(to);
    }
  }
  if (changed.length + deleted.length + renamed.length === 0) return null;
  return { changed: [...new Set(changed)], deleted, renamed: renamed.filter(([old]) => old !== "") };
}
