/**
 * Lefthook writes git's hooks itself, again at each of its installations, and reads what they do from its own files. The
 * one for a person's own additions is `lefthook-local.yml`: lines are added there as text, so that nothing else in it changes.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readPrivate } from "../private-files.ts";
import { CannotChange } from "./changes.ts";
import { blockOf, hasBlock, withoutBlock } from "./shell-block.ts";

const endings = ["yml", "yaml", "toml", "json"];
export const localFile = "lefthook-local.yml";

/** Whether lefthook runs what happens before a commit here. */
export function hasLefthook(root: string, hookText: string | null): boolean {
  if (hookText?.includes("LEFTHOOK") === true) return true;
  const names = endings.flatMap((ending) => [`lefthook.${ending}`, `.lefthook.${ending}`]);
  return names.some((name) => /^\W*pre-commit\b/m.test(readPrivate(join(root, name)) ?? ""));
}

export function addToLefthook(root: string, text: string | null, command: string): string {
  const other = endings
    .flatMap((ending) => [`lefthook-local.${ending}`, `.lefthook-local.${ending}`])
    .find((name) => name !== localFile && existsSync(join(root, name)));
  if (other !== undefined) {
    throw new CannotChange(`${other} is not changed; add to its pre-commit commands one that runs \`${command}\``);
  }
  const rest = withoutBlock(text ?? "");
  const entry = (indent: string): string => blockOf(["leasehold:", `  run: ${JSON.stringify(command)}`], indent);
  const whole = blockOf(["pre-commit:", "  commands:", "    leasehold:", `      run: ${JSON.stringify(command)}`]);
  if (!/^["']?pre-commit["']?\s*:/m.test(rest)) {
    return `${rest}${rest === "" || rest.endsWith("\n") ? "" : "\n"}${whole}`;
  }
  const [section = ""] = /^pre-commit:[ \t]*\n(?:[ \t]+[^\n]*\n?|[ \t]*#[^\n]*\n?|\n)*/m.exec(rest) ?? [];
  const [, line = "", indent = ""] = /^([ \t]+commands:[ \t]*\n)([ \t]+)\S/m.exec(section) ?? [];
  if (line !== "") return rest.replace(section, section.replace(line, `${line}${entry(indent)}`));
  const [, jobs = "", inner = ""] = /^([ \t]+jobs:[ \t]*\n)([ \t]*)- /m.exec(section) ?? [];
  if (jobs !== "") {
    const job = blockOf(["- name: leasehold", `  run: ${JSON.stringify(command)}`], inner);
    return rest.replace(section, section.replace(jobs, `${jobs}${job}`));
  }
  throw new CannotChange(`${localFile} is not changed; add to its pre-commit commands one that runs \`${command}\``);
}

/** Null where nothing of it was there before. */
export function removeFromLefthook(text: string): string | null {
  if (!hasBlock(text)) return text;
  const rest = withoutBlock(text);
  return rest === "" ? null : rest;
}
