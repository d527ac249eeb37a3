/** What acts for an agent: its id, and the credential of its calls. */
import type { CallOptions, Client, OperationInput, Timed } from "./client.ts";
import type { OperationName } from "./idempotency.ts";
import type { OperationAnswers } from "./wire.ts";

export interface Actor {
  readonly client: Client;
  readonly agentId: string;
  /** null: the client's own key, or none. */
  readonly token: string | null;
}

export function askAs<N extends OperationName>(
  { client, token }: Actor,
  name: N,
  input: OperationInput<N>,
  options: CallOptions = {},
): Promise<Timed<OperationAnswers[N]>> {
  return client.ask(name, input, { ...options, token });
}
