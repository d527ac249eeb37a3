/** One line for what happened. */
import type { LeaseholdEvent } from "../sdk/events.ts";
import type { Colour, Paint } from "./paint.ts";
import { plain } from "./plain-text.ts";

type Fields = Readonly<Record<string, unknown>>;

export function eventLine(event: LeaseholdEvent, paint: Paint): string {
  const { seq, at, type } = event;
  const time = paint.isOn ? at.slice(11, 23) : at;
  const kind = paint[colourOf(type)](type.padEnd(paint.isOn ? 18 : 0));
  return [paint.dim(String(seq)), paint.dim(time), kind, plain(wordsOf(event))].join(paint.isOn ? "  " : "\t");
}

function colourOf(type: string): Colour {
  if (/granted|accepted|completed|registered|reset|revived/.test(type)) return "green";
  if (/revoked|died|expired|fenced|escalated|timed_out|suspended/.test(type)) return "red";
  if (/waiting|paused|held|requeued/.test(type)) return "yellow";
  return "cyan";
}

/** By what it carries rather than by its type: a newer server may tell of things that this version does not know. */
function wordsOf(event: LeaseholdEvent): string {
  const { reason, version } = event;
  const why = typeof reason === "string" ? [`(${reason})`] : [];
  const now = typeof version === "string" ? [`now ${version}`] : [];
  return [contentOf(event), ...why, ...now].join(" ");
}

function contentOf(event: LeaseholdEvent): string {
  const { lease, request, agent, resource, task, receipt } = event as Fields;
  if (isObject(lease)) return `${listed(lease, "predicate", "resource", "agent_id")} fence ${listed(lease, "fence")}`;
  if (isObject(request)) return `${listed(request, "agent_id")} ${intentsOf(request)}`;
  if (isObject(agent)) return `${listed(agent, "agent_id", "state")} epoch ${listed(agent, "epoch")}`;
  if (isObject(resource)) return listed(resource, "resource", "state");
  if (isObject(task)) return listed(task, "task_id", "task_type", "status");
  if (isObject(receipt)) return listed(receipt, "receipt_id", "phase", "task_id");
  return restOf(event);
}

function listed(fields: Fields, ...names: readonly string[]): string {
  return names
    .flatMap((name) => (fields[name] === undefined || fields[name] === null ? [] : [String(fields[name])]))
    .join(" ");
}

function intentsOf({ intents }: Fields): string {
  if (!Array.isArray(intents)) return "";
  return intents.map((one: unknown) => (isObject(one) ? listed(one, "predicate", "resource") : "")).join(", ");
}

function restOf(event: LeaseholdEvent): string {
  const { seq: _seq, at: _at, type: _type, reason: _reason, version: _version, ...rest } = event;
  return Object.entries(rest)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
