/**
 * What a tool is about to do, by its name and input. The agents' tools differ in names and agree in kind, and a tool of
 * an MCP server (`mcp__files__write_file`, Cursor's `MCP:write_file`, Gemini's `mcp_files_write_file`) is known by the end
 * of its name; so one table serves all.
 */
import { patchPaths } from "./patch.ts";
import { quoted } from "./words.ts";

export interface Write {
  readonly predicate: "MUTATES" | "DELETES";
  readonly path: string;
  /** The whole content is replaced: what was changed since it was read would be lost. */
  readonly isWhole: boolean;
}

export type Action =
  | {
      readonly kind: "write";
      readonly writes: readonly Write[];
      readonly renames: readonly (readonly [string, string])[];
    }
  | { readonly kind: "read"; readonly paths: readonly string[] }
  | { readonly kind: "shell"; readonly command: string }
  | { readonly kind: "none" };

type Input = Readonly<Record<string, unknown>>;
type Reader = (input: Input) => Action;

const none: Action = { kind: "none" };
const pathFields =
  "file_path notebook_path absolute_path path filePath target_file target_notebook file filename".split(" ");

const edits = reader(false);
const overwrites = reader(true);
const deletes = reader(false, "DELETES");

/** In small letters, as each agent calls them. */
const readers = new Map<string, Reader>(
  (
    [
      ["edit multiedit strreplace str_replace search_replace replace edit_file", edits],
      ["notebookedit edit_notebook editnotebook", edits],
      ["write write_file create create_file tabwrite", overwrites],
      ["delete delete_file", deletes],
      ["move_file rename_file", moves],
      ["apply_patch applypatch", patches],
      ["read read_file read_many_files", reads],
      ["bash shell local_shell exec_command unified_exec run_shell_command run_terminal_cmd", shell],
    ] as const
  ).flatMap(([names, reader]) => names.split(" ").map((name) => [name, reader] as const)),
);

/** Null where a tool that is known to write does not say what: that cannot be guarded. */
export function actionOf(toolName: string, input: Input): Action | null {
  const name = (toolName.split(/__|:/).at(-1) ?? "").toLowerCase();
  const [, known = name] = /^mcp_.*_((?:read|write|edit|create|delete|move|rename)_file)$/.exec(name) ?? [];
  const read = readers.get(known);
  if (read === undefined) return none;
  const action = read(input);
  return action.kind === "none" ? null : action;
}

function reader(isWhole: boolean, predicate: Write["predicate"] = "MUTATES"): Reader {
  return (input) => {
    const paths = pathsIn(input);
    if (paths.length === 0) return none;
    return { kind: "write", writes: paths.map((path) => ({ predicate, path, isWhole })), renames: [] };
  };
}

function moves(input: Input): Action {
  const {
    source,
    from = source,
    old_path: old = from,
    destination,
    to: given = destination,
    new_path: to = given,
  } = input;
  if (typeof old !== "string" || typeof to !== "string") return none;
  return { kind: "write", writes: [], renames: [[old, to]] };
}

function patches(input: Input): Action {
  const { command, input: given, patch } = input;
  const text = textOf(command) ?? textOf(given) ?? textOf(patch);
  const found = text === null ? null : patchPaths(text);
  if (found === null) return none;
  const { changed, deleted, renamed } = found;
  return {
    kind: "write",
    writes: [
      ...changed.map((path) => ({ predicate: "MUTATES" as const, path, isWhole: false })),
      ...deleted.map((path) => ({ predicate: "DELETES" as const, path, isWhole: false })),
    ],
    renames: renamed,
  };
}

function reads(input: Input): Action {
  return { kind: "read", paths: pathsIn(input) };
}

function shell(input: Input): Action {
  const { command: given, cmd } = input;
  const command = textOf(given) ?? textOf(cmd);
  return command === null ? none : { kind: "shell", command };
}

/** A command may come as its words: then the last is the script of `bash -lc`, or all of them are the command. */
function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (!Array.isArray(value) || !value.every((one) => typeof one === "string")) return null;
  const [program = "", flag = "", script] = value;
  if (/(?:^|\/)(?:ba|z|da)?sh$/.test(program) && /^-\w*c$/.test(flag) && script !== undefined) return script;
  return value.map(quoted).join(" ");
}

function pathsIn(input: Input): readonly string[] {
  const paths: string[] = [];
  for (const field of pathFields) {
    const value = input[field];
    if (typeof value === "string" && value !== "" && !value.includes("\0")) paths.push(value);
  }
  const { paths: many, edits: each } = input;
  for (const list of [many, each]) {
    if (!Array.isArray(list)) continue;
    for (const one of list as readonly unknown[]) {
      if (typeof one === "string") paths.push(one);
      else if (typeof one === "object" && one !== null && list === each) paths.push(...pathsIn(one as Input));
    }
  }
  return [...new Set(paths)];
}
