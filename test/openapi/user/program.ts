/** A program of a user, compiled with the client that is generated from the OpenAPI document. */
import { Client } from "./client.ts";

export async function receiptIds(url: string, taskId: string): Promise<readonly string[]> {
  const answer = await new Client(url).list_receipts({ task_id: taskId, limit: 5 });
  if (answer.status !== 200) throw new Error(answer.body.error);
  return answer.body.receipts.map(({ receipt_id }) => receipt_id);
}

export async function create(url: string): Promise<string> {
  const answer = await new Client(url).create_task({}, { task_type: "code.generate", principal_ai: "boss" });
  if (answer.status !== 201 && answer.status !== 200) throw new Error(answer.body.error);
  return answer.body.task_id;
}

export async function resultOf(url: string, taskId: string): Promise<string | null> {
  const answer = await new Client(url).get_task({ task_id: taskId });
  if (answer.status !== 200) throw new Error(answer.body.error);
  const { result, receipts } = answer.body;
  // @ts-expect-error A task that has not ended has no result.
  const unchecked = () => result.receipt_id;
  return result === null ? (receipts[0]?.receipt_id ?? null) : unchecked();
}
