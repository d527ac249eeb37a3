/** An event in one line. */
import type { LiveEvent } from "../live/stream.ts";
import { middle } from "../ui/words.ts";

type Part = Readonly<Record<string, unknown>>;

export function eventWords(event: LiveEvent): string {
  const lease = event["lease"] as Part | undefined;
  const request = event["request"] as Part | undefined;
  const reason = event["reason"] === undefined ? "" : ` (${String(event["reason"])})`;
  if (lease !== undefined)
    return `${lease["agent_id"]} ${lease["predicate"]} ${middle(String(lease["resource"]))}${reason}`;
  if (request !== undefined) {
    const [intent] = (request["intents"] ?? []) as readonly Part[];
    return `${request["agent_id"]} ${middle(String(intent?.["resource"] ?? ""))}${reason}`;
  }
  if (event.type === "agent.transitioned") return `${event["agent_id"]} ${event["from"]} → ${event["to"]}${reason}`;
  if (event.type === "request.died") {
    const names = (event["resources"] ?? []) as readonly string[];
    return `${event["agent_id"]} ${names.map((name) => middle(name)).join(" ")} attempt ${event["attempt"]}${reason}`;
  }
  const rest = Object.entries(event).filter(([name]) => !["seq", "type", "at", "reason"].includes(name));
  return `${rest.map(([, value]) => wordOf(value)).join(" ")}${reason}`;
}

function wordOf(value: unknown): string {
  if (value === null || typeof value !== "object") return middle(String(value));
  const part = value as Part;
  return middle(String(part["agent_id"] ?? part["resource"] ?? part["cell"] ?? part["task_id"] ?? ""));
}
