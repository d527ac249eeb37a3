/** What has happened so far: the server tells all of it and ends, so that its end is certain and nobody need wait for it. */
import type { Client } from "../sdk/client.ts";
import { errorOf } from "../sdk/errors.ts";
import type { LeaseholdEvent } from "../sdk/events.ts";

export interface HistoryQuery {
  readonly since: number;
  readonly types: readonly string[];
  readonly resource: string | null;
  readonly agentId: string | null;
  readonly signal: AbortSignal;
}

export async function* readHistory(client: Client, query: HistoryQuery): AsyncGenerator<LeaseholdEvent, void> {
  const { since, types, resource, agentId, signal } = query;
  const asked = new URLSearchParams({ since: String(since), follow: "false" });
  if (types.length > 0) asked.set("types", types.join(","));
  if (resource !== null) asked.set("resource", resource);
  if (agentId !== null) asked.set("agent_id", agentId);
  const response = await client.fetch(`/v1/events?${asked}`, {}, { signal });
  if (!response.ok || response.body === null) {
    throw errorOf(response.status, await response.json().catch(() => null));
  }
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body) {
    const frames = `${rest}${decoder.decode(chunk, { stream: true })}`.split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const event = eventIn(frame);
      if (event !== null) yield event;
    }
  }
}

function eventIn(frame: string): LeaseholdEvent | null {
  const [, id] = /^id: (\d+)$/m.exec(frame) ?? [];
  const [, data] = /^data: (.+)$/m.exec(frame) ?? [];
  if (id === undefined || data === undefined) return null;
  return { ...(JSON.parse(data) as Omit<LeaseholdEvent, "seq">), seq: Number(id) } as LeaseholdEvent;
}
