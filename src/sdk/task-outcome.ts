/** How work on a task ends: by what the handler returns or throws, in the words of a receipt (T13, R2). */
import type { OperationInputs } from "./wire.ts";

/** What came of it: words, or where the artifact lies. A text alone is the words; nothing is an outcome too. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing returns void.
export type TaskResult = string | TaskOutcome | undefined | void;

export interface TaskOutcome {
  readonly text?: string | undefined;
  /** Where the artifact lies; its pointer is the same unless it is given. */
  readonly artifactLocation?: string | undefined;
  readonly artifactPointer?: string | undefined;
  readonly artifactMime?: string | undefined;
  readonly artifactChecksum?: string | undefined;
  readonly artifactSizeBytes?: number | undefined;
  readonly metadata?: unknown;
}

/** Thrown by a handler: it did not work out. Any other error says the same, and asks for another attempt. */
export class TaskFailed extends Error {
  readonly retry: boolean;

  constructor(message: string, { retry = true, cause }: { readonly retry?: boolean; readonly cause?: unknown } = {}) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "TaskFailed";
    this.retry = retry;
  }
}

export type EscalationClass = "owner" | "capability" | "trust" | "policy" | "scope" | "other";

/** Thrown by a handler: somebody else has to decide. */
export class TaskEscalated extends Error {
  readonly escalationClass: EscalationClass;
  readonly to: string | null;
  readonly retry: boolean;

  constructor(
    reason: string,
    options: { readonly class?: EscalationClass; readonly to?: string; readonly retry?: boolean } = {},
  ) {
    super(reason);
    this.name = "TaskEscalated";
    this.escalationClass = options.class ?? "other";
    this.to = options.to ?? null;
    this.retry = options.retry ?? false;
  }
}

export type StopReason =
  /** Its principal has called the task off. */
  | "cancel"
  /** A more urgent one needs this worker. */
  | "preempt"
  /** The worker is going down. */
  | "drain"
  /** It took longer than it may. */
  | "overrun"
  /** Its lease has ended, or may have. */
  | "lost";

/** Why the signal of a task fired. */
export class TaskStopped extends Error {
  readonly reason: StopReason;

  constructor(reason: StopReason, detail: string) {
    super(detail);
    this.name = "TaskStopped";
    this.reason = reason;
  }
}

export type ReceiptInput = OperationInputs["submit_receipt"];

const textMax = 20_000;

export function successReceipt(result: TaskResult): Partial<ReceiptInput> {
  const outcome: TaskOutcome = typeof result === "string" ? { text: result } : (result ?? {});
  const { text, artifactLocation, artifactPointer = artifactLocation } = outcome;
  const hasArtifact = artifactPointer !== undefined;
  const hasText = text !== undefined && text !== "";
  return {
    status: "success",
    outcome_kind: hasArtifact ? (hasText ? "mixed" : "artifact_pointer") : hasText ? "response_text" : "none",
    ...(hasText && { outcome_text: text }),
    ...(hasArtifact && {
      artifact_location: artifactLocation ?? artifactPointer,
      artifact_pointer: artifactPointer,
      ...(outcome.artifactMime !== undefined && { artifact_mime: outcome.artifactMime }),
      ...(outcome.artifactChecksum !== undefined && { artifact_checksum: outcome.artifactChecksum }),
      ...(outcome.artifactSizeBytes !== undefined && { artifact_size_bytes: outcome.artifactSizeBytes }),
    }),
    ...(outcome.metadata !== undefined && { metadata: outcome.metadata }),
  };
}

export function failureReceipt(error: unknown, attempt: number): Partial<ReceiptInput> {
  if (error instanceof TaskEscalated) {
    return {
      phase: "escalate",
      escalation_class: error.escalationClass,
      escalation_reason: error.message.slice(0, textMax),
      ...(error.to !== null && { escalation_to: error.to, recipient_ai: error.to }),
      ...(error.retry && { retry_requested: true, attempt }),
    };
  }
  const retry = !(error instanceof TaskFailed) || error.retry;
  const text = (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, textMax);
  return {
    status: "failure",
    outcome_kind: "response_text",
    outcome_text: text,
    ...(retry && { retry_requested: true, attempt }),
  };
}
