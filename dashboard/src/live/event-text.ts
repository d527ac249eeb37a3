/** What filters look through in an event. Thousands are kept and filtered a few times a second, so it is made once. */
import type { LiveEvent } from "./stream.ts";

type Part = Readonly<Record<string, unknown>>;

const texts = new WeakMap<LiveEvent, string>();

export function eventText(event: LiveEvent): string {
  const known = texts.get(event);
  if (known !== undefined) return known;
  const text = JSON.stringify(event).toLowerCase();
  texts.set(event, text);
  return text;
}

/** Whether it is about this agent, or worker: the same fields by which `GET /v1/events?agent_id=` chooses. */
export function concerns(event: LiveEvent, agentId: string): boolean {
  if (event["agent_id"] === agentId || event["worker_id"] === agentId) return true;
  for (const field of ["lease", "request", "agent"]) {
    if ((event[field] as Part | undefined)?.["agent_id"] === agentId) return true;
  }
  return event.type === "lease.transferred" && event["reason"] === agentId;
}
