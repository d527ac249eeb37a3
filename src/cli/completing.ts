/**
 * What may stand in place of a line's last word: the values that a flag takes, or what the command's words name. What a
 * server has to be asked for has a short limit. A shell waits for this at a press of the tab key: after an error
 * nothing is offered, and nothing is created.
 */
import type { Client } from "../sdk/client.ts";
import { readProfiles } from "../trust/profiles.ts";
import { sharedFlags } from "./arguments.ts";
import type { Command, Environment, Flag, Flags, Named } from "./command.ts";
import { connect, readAddress } from "./connection.ts";
import { plain } from "./plain-text.ts";

export interface Candidate {
  readonly value: string;
  /** Tells it from others, where the shell can show that. */
  readonly words: string;
}

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** Names of files are right too. */
  readonly hasFiles: boolean;
}

const nothing: Completion = { candidates: [], hasFiles: false };

/** A server has this long to answer. */
const answerMs = 700;
/** More than anybody reads; the rest shows when more is typed. */
const listedMax = 1_000;

/** What an expression of the help stands for, wherever it stands. */
const namedBySign: Readonly<Record<string, Named>> = {
  RES: "resource",
  PREFIX: "resource",
  LEASE: "lease",
  AGENT: "agent",
  TASK: "task",
  TYPE: "task type",
  KEY_ID: "key",
  FILE: "file",
  DIR: "file",
  FOLDER: "file",
  PATH: "file",
};

interface Place {
  readonly named: Named | null;
  readonly choices: readonly string[];
}

/** The words of the line without the program's name; the last one is being typed, and may be empty. */
export async function complete(
  words: readonly string[],
  under: (first: string) => Promise<readonly Command[]>,
  environment: Environment,
  cwd: string,
): Promise<Completion> {
  const [first = "", second = ""] = words;
  const commands = await under(first);
  const command =
    commands.find(({ name }) => words.length > 2 && name === `${first} ${second}`) ??
    commands.find(({ name }) => name === first);
  if (command === undefined) return nothing;
  const rest = words.slice(command.name.split(" ").length);
  if (command.wraps === true && rest.slice(0, -1).includes("--")) return { candidates: [], hasFiles: true };
  const line = new TypedLine({ ...sharedFlags(command), ...command.flags }, rest);
  const { named, choices } = line.flagAtEnd === null ? wordPlace(command, line.wordCount) : flagPlace(line.flagAtEnd);
  const typed = line.typed;
  const isLike = ({ value }: Candidate) => value.startsWith(typed) && plain(value) === value;
  const known = choices.map((value) => ({ value, words: "" }));
  const looked = named === null ? [] : await lookUp(named, { line, typed, environment, cwd });
  return {
    candidates: [...known, ...looked].filter(isLike).map(({ value, words }) => ({ value, words: plain(words) })),
    hasFiles: named === "file" || (named === "resource" && !/^[A-Z][A-Z0-9_]*:/.test(typed)),
  };
}

function flagPlace({ choices = [], names, sign = "" }: Flag): Place {
  return { choices, named: choices.length > 0 ? null : (names ?? namedBySign[sign] ?? null) };
}

/** The usage says what words follow the name: "LEASE AGENT", "[-x|-s] RES…", "[claude|codex]…". */
function wordPlace({ usage = "", names }: Command, at: number): Place {
  const signs = usage
    .replace(/^(?:\[-[^\]]*\] )+/, "")
    .split(" ")
    .map((sign) => sign.replaceAll(/[[\]]/g, ""));
  const end = signs.findIndex((sign) => sign.startsWith("-") || sign === "|");
  const own = end === -1 ? signs : signs.slice(0, end);
  const last = own.at(-1) ?? "";
  const sign = own[at] ?? (last.endsWith("…") ? last : "");
  const bare = sign.replace("…", "");
  if (bare === "") return { choices: [], named: null };
  if (bare.includes("|")) return { choices: bare.split("|"), named: null };
  return { choices: [], named: namedBySign[bare] ?? names ?? null };
}

/** A line that is being typed: wrong flags are not its matter, and nothing of it throws. */
class TypedLine {
  readonly typed: string;
  /** The flag whose value the last word is; null where it is a word of the command. */
  readonly flagAtEnd: Flag | null = null;
  /** How many words stand before the last. */
  readonly wordCount: number;
  private readonly given = new Map<string, string[]>();

  constructor(flags: Flags, words: readonly string[]) {
    const nameOf = (word: string) =>
      Object.keys(flags).find((name) => word === `--${name}` || word === `-${flags[name]?.short}`);
    const before = words.slice(0, -1);
    const last = words.at(-1) ?? "";
    let wordCount = 0;
    let open: string | null = null;
    for (const word of before) {
      const [head = "", ...tail] = word.split("=");
      const name = nameOf(head);
      if (open !== null) {
        this.add(open, word);
        open = null;
      } else if (name === undefined) wordCount += word.startsWith("-") ? 0 : 1;
      else if (tail.length > 0) this.add(name, tail.join("="));
      else if (flags[name]?.sign !== undefined) open = name;
      else this.add(name, "");
    }
    const [head = "", ...tail] = last.split("=");
    const joined = last.startsWith("--") && tail.length > 0 ? nameOf(head) : undefined;
    this.flagAtEnd = flags[open ?? joined ?? ""] ?? null;
    this.typed = open === null && joined !== undefined ? tail.join("=") : last;
    this.wordCount = wordCount;
  }

  private add(name: string, value: string): void {
    this.given.set(name, [...(this.given.get(name) ?? []), value]);
  }

  text = (name: string): string | null => this.given.get(name)?.at(-1) ?? null;
  texts = (name: string): readonly string[] => this.given.get(name) ?? [];
  isSet = (name: string): boolean => this.given.has(name);
}

interface Search {
  readonly line: TypedLine;
  readonly typed: string;
  readonly environment: Environment;
  readonly cwd: string;
}

async function lookUp(named: Named, { line, typed, environment, cwd }: Search): Promise<readonly Candidate[]> {
  try {
    if (named === "file") return [];
    if (named === "profile") {
      return Object.entries(readProfiles(environment)).map(([value, { url }]) => ({ value, words: url }));
    }
    const client = await connect({ ...readAddress(line, environment, cwd), timeoutMs: answerMs });
    const late = AbortSignal.timeout(answerMs);
    const overdue = new Promise<readonly Candidate[]>((resolve) =>
      late.addEventListener("abort", () => resolve([]), { once: true }),
    );
    const found = lists[named](client, typed).finally(() => client.close().catch(() => undefined));
    return [...new Map((await Promise.race([found, overdue])).map((one) => [one.value, one])).values()];
  } catch {
    return [];
  }
}

type Listing = (client: Client, typed: string) => Promise<readonly Candidate[]>;

const page = { limit: listedMax };
const once = { retries: 0, timeoutMs: answerMs };

const lists: Readonly<Record<Exclude<Named, "file" | "profile">, Listing>> = {
  async resource(client, typed) {
    const [held, declared] = await Promise.allSettled([
      client.call("list_leases", page, once),
      client.call("list_resources", { ...page, prefix: typed === "" ? null : typed }, once),
    ]);
    const leases = held.status === "fulfilled" ? held.value.leases : [];
    const resources = declared.status === "fulfilled" ? declared.value.resources : [];
    return [
      ...resources.map(({ resource, state }) => ({ value: resource, words: state })),
      ...leases.map((lease) => ({ value: lease.resource, words: `${lease.predicate} ${lease.agent_id}` })),
    ];
  },
  async lease(client) {
    const { leases } = await client.call("list_leases", page, once);
    return leases.map(({ id, resource, agent_id: agent }) => ({ value: id, words: `${resource} ${agent}` }));
  },
  async agent(client) {
    const { agents } = await client.call("list_agents", page, once);
    return agents.map(({ agent_id: value, state }) => ({ value, words: state }));
  },
  async task(client) {
    const { tasks } = await client.call("list_tasks", page, once);
    return tasks.map((task) => ({ value: task.task_id, words: `${task.status} ${task.task_type}` }));
  },
  async "task type"(client) {
    const { tasks } = await client.call("list_tasks", page, once);
    return tasks.map(({ task_type: value }) => ({ value, words: "" }));
  },
  async tenant(client) {
    const { tenants } = await client.call("list_tenants", page, once);
    return tenants.map(({ tenant_id: value, suspended }) => ({ value, words: suspended ? "suspended" : "" }));
  },
  async key(client) {
    const { keys } = await client.call("list_keys", page, once);
    return keys.map(({ key_id: value, role, label }) => ({ value, words: `${role} ${label ?? ""}`.trim() }));
  },
  async cell(client) {
    const { cells } = await client.call("list_cells", page, once);
    return cells.map(({ cell: value, state }) => ({ value, words: state }));
  },
  async policy(client) {
    const { policies } = await client.call("list_policies", page, once);
    return policies.map(({ policy_id: value, description }) => ({ value, words: description ?? "" }));
  },
};
