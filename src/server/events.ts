import type { Answer } from "../protocol/answer.ts";
import type { Service } from "./service.ts";
export interface EventFilter {
  readonly tenant: string;
  readonly since: number | null;
  readonly types: readonly string[] | null;
  readonly resource: string | null;
  readonly agentId: string | null;
}
export function followEvents(
  _service: Service,
  _filter: EventFilter,
  _deliver: (seq: number, text: string) => void,
  _ended: (answer: Answer) => void,
): () => void {
  return () => undefined;
}
