/** The numbers that the wire holds its callers to: the kernel's, and those that only the edge knows. */
import { limits as kernelLimits } from "../../kernel/contract/limits.ts";

export const limits = {
  ...kernelLimits,
  /** One request's body, and one frame of the stream. */
  bodyBytesMax: 1_048_576,
  /** A client's proxy or library often gives up at 60 s. */
  holdMsMax: 55_000,
  /** A time in ISO 8601. */
  timeLengthMax: 64,
  pageMax: 1_000,
  /** A page whose items are larger together ends before its limit, and says how to go on. */
  pageBytesMax: 2 ** 20,
  pageDefault: 100,
  cursorLengthMax: 2_048,
  /** A token with all the caveats that it can have. */
  tokenLengthMax: 16_384,
  /** How long tokens of a rotated key may stay good. */
  tokenOverlapMsMax: 86_400_000,
  eventTypesMax: 64,
  /** The longest that events wait to be sent together. */
  eventBatchMsMax: 1_000,
  /** How deep free JSON (a digest's context) may nest; JSON.stringify has a stack, and a caller must not end it. */
  jsonDepthMax: 64,
  /** Commands in one frame of the stream. */
  frameCommandsMax: 1_024,
  /** In rates, a body or an answer counts as one request more for each of these that it has (S4). */
  bytesPerRequest: 16_384,
  /** The longest that nothing is read from a connection that is over its rate; pings are answered late meanwhile. */
  restMsMax: 1_000,
  frameIdLengthMax: 64,
  /** Tasks and receipts that one call can bring, if they fit into a body. */
  batchMax: 10_000,
  /** Steps that a chain of causes is followed, each way. */
  chainMax: 1_000,
  /** Receipts that a task is shown with; the list of receipts has the others. */
  taskReceiptsMax: 100,
  /** What is searched for in names and inputs. */
  searchLengthMax: 256,
  /** Bodies and inputs that a page of a search reads; its `next_cursor` goes on behind them. */
  searchBytesMax: 2 ** 20,
  /** Leases that an agent is listed with. */
  leasesListedMax: 16,
  /** Fences, times and durations stay exact as JSON numbers below 2^53 (L11). */
  integerMax: Number.MAX_SAFE_INTEGER,
} as const;
