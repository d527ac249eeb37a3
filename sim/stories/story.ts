/**
 * Runs a story: a text with a title, a paragraph on the rule that it shows, and steps. `given …` prepares the scene and
 * prints nothing. `at <time> …` is a step; its reply, events and changed records stand indented below it.
 */
import { globSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { Command } from "../../src/kernel/contract/commands.ts";
import type { Lease, RecordKind, StoredRecord } from "../../src/kernel/contract/records.ts";
import type { Reply } from "../../src/kernel/contract/replies.ts";
import type { EndedTask } from "../../src/kernel/contract/task-records.ts";
import {
  answerForEnded,
  answerForEndedTask,
  apply,
  createState,
  restore,
  type Step,
  settle,
  snapshot,
} from "../../src/kernel/kernel.ts";
import { type CommandDraft, millisOf, readSentence } from "./sentences.ts";
import { beginning, eventLine, recordLine, replyLine } from "./transcript.ts";

const tenant = "t1";
const widthMax = 118;
const kindsShown: readonly RecordKind[] = ["lease", "request", "agent", "task", "resource", "cell"];
const indent = "    ";
const kernelId = /\b(?:lse|req|T|rcp)[_-][0-9a-z]+(?:-\d+)?/g;
const nouns: Readonly<Record<string, string>> = { lse: "lease", req: "request", "T-": "task", rcp: "receipt" };

export interface Story {
  readonly path: string;
  readonly text: string;
  /** What the text would be if the kernel's answers were written again. */
  readonly played: string;
}

/** Every story: as it stands in its file, and as the kernel plays it now. */
export function readStories(): Story[] {
  return globSync(join(import.meta.dirname, "*.txt"))
    .sort()
    .map((path) => ({ path, text: readFileSync(path, "utf8") }))
    .map(({ path, text }) => ({ path: relative("", path), text, played: play(text) }));
}

/** Some stories are shown here, each in a fenced block under a comment that names it. */
export const docsPage = "docs/architecture.md";
const shownStory = /(<!-- story: (?<name>[a-z-]+) -->\n```text\n)(?<text>[^`]*)(?=```\n)/g;

export function storiesIn(page: string): { name: string; text: string }[] {
  return [...page.matchAll(shownStory)].map(([, , name = "", text = ""]) => ({ name, text }));
}

export function withStories(page: string, stories: readonly Story[]): string {
  return page.replaceAll(shownStory, (all, head: string, name: string) => {
    const story = stories.find(({ path }) => basename(path) === `${name}.txt`);
    return story === undefined ? all : head + story.played;
  });
}

/** The story as it should stand: its own words, and below each step what the kernel does now. */
export function play(text: string): string {
  const scene = new Scene();
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith(indent)) continue;
    lines.push(line);
    const [, time, sentence = ""] = /^(?:given|at (\w+)) (.+)$/.exec(line) ?? [];
    if (time !== undefined) lines.push(...scene.play(millisOf(time), sentence));
    else if (sentence !== "") scene.prepare(sentence);
    else if (scene.isSet && line !== "") throw new Error(`neither "given …" nor "at <time> …": ${line}`);
  }
  return lines.join("\n");
}

class Scene {
  /** A sentence was played, so prose is over. */
  isSet = false;
  private state = createState();
  private now = beginning;
  private drawn = 0;
  private readonly nameOf = new Map<string, string>();
  private readonly idOf = new Map<string, string>();
  private readonly lineOf = new Map<string, string>();
  private readonly leases = new Map<string, Lease>();
  private readonly endedTasks = new Map<string, EndedTask>();
  private readonly epochs = new Map<string, number>();

  constructor() {
    this.decide({ type: "create_tenant", actor: { role: "operator", agentId: null, epoch: null }, tenantId: tenant });
  }

  prepare(sentences: string): void {
    for (const sentence of sentences.split(", ")) {
      const [reply = ""] = this.answer(sentence);
      if (reply.includes("REFUSED")) throw new Error(`"given ${sentence}" is answered ${reply.trim()}`);
    }
  }

  play(atMs: number, sentence: string): string[] {
    if (beginning + atMs < this.now) throw new Error(`"at ${atMs}ms ${sentence}": time does not run backwards (L7)`);
    this.now = beginning + atMs;
    if (sentence === "the server restarts") {
      this.state = restore(snapshot(this.state));
      return [`${indent}nothing changes`];
    }
    if (sentence !== "time passes") return this.answer(sentence);
    const step = settle(this.state, this.now, Number.POSITIVE_INFINITY);
    this.keep(step);
    return this.linesOf(step);
  }

  private answer(sentence: string): string[] {
    this.isSet = true;
    const { reply, step } = this.decide(this.read(sentence));
    return [indent + this.shortened(replyLine(reply)), ...this.linesOf(step)];
  }

  private read(sentence: string): CommandDraft {
    return readSentence(sentence, {
      tenant,
      idOf: (name) => this.idOf.get(name) ?? fail(`nothing is called "${name}" yet: ${sentence}`),
      epochOf: (agentId) => this.epochs.get(agentId) ?? 1,
      generationOf: (leaseId) => this.leases.get(leaseId)?.generation ?? 1,
    });
  }

  /** As the server does: of what the kernel no longer knows, history answers. */
  private decide(draft: CommandDraft): { reply: Reply; step: Step } {
    this.drawn++;
    const command: Command = { ...draft, tenant, entropy: [Math.imul(this.drawn, 2_654_435_761) >>> 0, 0] };
    const { reply, ...step } = apply(this.state, command, this.now);
    this.keep(step);
    if (reply.type !== "refused") return { reply, step };
    if (reply.code === "lease_unknown") {
      return { reply: answerForEnded(command, reply, this.leases.get(reply.leaseId ?? "") ?? null), step };
    }
    if (reply.code !== "task_unknown") return { reply, step };
    return { reply: answerForEndedTask(command, reply, this.endedTasks.get(reply.taskId ?? "") ?? null), step };
  }

  private keep({ changes }: Step): void {
    for (const { kind, record, alive } of changes) {
      const stored = { kind, record } as StoredRecord;
      if (stored.kind === "agent") this.epochs.set(stored.record.id, stored.record.epoch);
      if (stored.kind === "lease") this.leases.set(stored.record.id, stored.record);
      if (stored.kind === "task" && !alive) this.endedTasks.set(stored.record.id, { ...stored.record, payload: null });
    }
  }

  /** The events in their order, and then the records that read differently than before, by kind and id. */
  private linesOf({ events, changes }: Step): string[] {
    const records: { key: string; line: string }[] = [];
    for (const { kind, record, alive } of changes) {
      const line = recordLine({ kind, record } as StoredRecord, alive);
      const key = `${kindsShown.indexOf(kind)} ${"id" in record ? record.id : "name" in record ? record.name : ""}`;
      if (line === null || this.lineOf.get(key) === line) continue;
      this.lineOf.set(key, line);
      records.push({ key, line });
    }
    records.sort((a, b) => (a.key < b.key ? -1 : 1));
    const lines = records.map(({ line }) => line);
    return [...this.wrapped("events ", events.map(eventLine), ","), ...this.wrapped("records", lines, ";")];
  }

  /** The items in as few lines as they fit in. */
  private wrapped(head: string, items: readonly string[], separator: string): string[] {
    const lines: string[] = [];
    let line = `${indent}${head}`;
    for (const [index, item] of items.map((one) => this.shortened(one)).entries()) {
      if (index > 0) line += separator;
      if (index > 0 && line.length + item.length > widthMax) {
        lines.push(line);
        line = indent + " ".repeat(head.length);
      }
      line += ` ${item}`;
    }
    return items.length === 0 ? [] : [...lines, line];
  }

  /** Ids are named in the order in which they appear: `lease 1`, `lease 2`. */
  private shortened(text: string): string {
    return text.replaceAll(kernelId, (id) => {
      const known = this.nameOf.get(id);
      if (known !== undefined) return known;
      const noun = nouns[id.slice(0, 3)] ?? nouns[id.slice(0, 2)] ?? fail(`an id of unknown kind: ${id}`);
      const name = `${noun} ${[...this.nameOf.values()].filter((one) => one.startsWith(noun)).length + 1}`;
      this.nameOf.set(id, name);
      this.idOf.set(name, id);
      return name;
    });
  }
}

function fail(message: string): never {
  throw new Error(message);
}
