/** Whether an answer is one that its operation declares; for tests. */
import { comesWith, isErrorCode } from "../answers/errors.ts";
import { commonErrors, type Operation } from "../operation.ts";
import { checkOf } from "../schema/check.ts";

/** A sentence on what is wrong with it; null: nothing. */
export function findAnswerFault(
  operation: Operation,
  { status, body }: { status: number; body: string },
): string | null {
  const value: unknown = body === "" ? null : JSON.parse(body);
  const declared = operation.replies.filter((reply) => reply.status === status);
  const faults = declared.map(({ schema }) => checkOf(schema)(value));
  if (faults.some(({ ok }) => ok)) return null;
  const error = errorOf(value);
  if (error === null)
    return `${operation.name} answered ${status} ${body}: ${faults.map((one) => (one.ok ? "" : one.detail)).join(" ")}`;
  if (!isErrorCode(error)) return `${operation.name} answered with the unknown code ${error}`;
  if (!operation.errors.includes(error) && !commonErrors.includes(error))
    return `${operation.name} does not declare ${error}`;
  return comesWith(error, status) ? null : `${error} came with status ${status}`;
}

function errorOf(value: unknown): string | null {
  if (typeof value !== "object" || value === null || !("error" in value) || !("detail" in value)) return null;
  return typeof value.error === "string" ? value.error : null;
}
