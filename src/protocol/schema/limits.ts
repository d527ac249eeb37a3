/**
 * The numbers that the wire holds its callers to. Those the kernel has too are written again, because only its types
 * may be imported here; `satisfies` compares each with the kernel's own, so that a difference does not compile.
 */
import type { limits as kernelLimits } from "../../kernel/contract/limits.ts";
import type { resourceNameLimits } from "../../kernel/names/resource-name.ts";

type Kernel = typeof kernelLimits;

const sharedLimits = {
  ttlMsMin: 100,
  intentsMax: 256,
  unitsMax: 1_000_000_000,
  purposeLengthMax: 1_024,
  versionLengthMax: 1_024,
  keyLengthMax: 256,
  idLengthMax: 128,
  reasonLengthMax: 1_024,
  labelsMax: 32,
  labelLengthMax: 256,
  taskPriorityMax: 1_000,
  taskLeaseMsMax: 86_400_000,
  taskAttemptsMax: 1_000,
  taskOffersMax: 10_000,
  taskDelayMsMax: 366 * 86_400_000,
  taskRequiresMax: 32,
  taskDependsOnMax: 256,
  taskConcurrencyMax: 1_000_000,
  taskPollMax: 1_000,
  taskBodyBytesMax: 102_400,
  receiptTextMax: 4_096,
  kindsMax: 256,
} as const satisfies Pick<
  Kernel,
  | "ttlMsMin"
  | "intentsMax"
  | "unitsMax"
  | "purposeLengthMax"
  | "versionLengthMax"
  | "keyLengthMax"
  | "idLengthMax"
  | "reasonLengthMax"
  | "labelsMax"
  | "labelLengthMax"
  | "taskPriorityMax"
  | "taskLeaseMsMax"
  | "taskAttemptsMax"
  | "taskOffersMax"
  | "taskDelayMsMax"
  | "taskRequiresMax"
  | "taskDependsOnMax"
  | "taskConcurrencyMax"
  | "taskPollMax"
  | "taskBodyBytesMax"
  | "receiptTextMax"
  | "kindsMax"
>;

export const limits = {
  ...sharedLimits,
  resourceLengthMax: 1_024 satisfies (typeof resourceNameLimits)["lengthMax"],
  /** One request's body, and one frame of the stream. */
  bodyBytesMax: 1_048_576,
  /** A client's proxy or library often gives up at 60 s. */
  holdMsMax: 55_000,
  /** Leases named in one command; what holds more is asked for without names. */
  leaseIdsMax: 10_000,
  assumptionsMax: 1_024,
  pageMax: 1_000,
  pageDefault: 100,
  cursorLengthMax: 2_048,
  /** A token with all the caveats that it can have. */
  tokenLengthMax: 16_384,
  eventTypesMax: 64,
  /** How deep free JSON (a digest's context) may nest; JSON.stringify has a stack, and a caller must not end it. */
  jsonDepthMax: 64,
  /** Commands in one frame of the stream. */
  frameCommandsMax: 1_024,
  frameIdLengthMax: 64,
  /** Tasks and receipts that one call can bring, if they fit into a body. */
  batchMax: 10_000,
  /** Steps that a chain of causes is followed, each way. */
  chainMax: 1_000,
  /** Receipts that a task is shown with; the list of receipts has the others. */
  taskReceiptsMax: 100,
  /** Fences, times and durations stay exact as JSON numbers below 2^53 (L11). */
  integerMax: Number.MAX_SAFE_INTEGER,
} as const;
