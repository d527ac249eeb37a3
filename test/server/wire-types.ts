/** What goes over the wire, as types for tests: the SDK's, and the two answers that it turns into errors. */

import type * as shapes from "../../src/protocol/leases/shapes.ts";
import type { Static } from "../../src/protocol/schema/schema.ts";
import type { Blocker } from "../../src/sdk/wire.ts";

export type {
  Agent as WireAgent,
  CreatedTask as WireCreatedTask,
  Digest as WireDigest,
  Granted as WireGranted,
  Key as WireKey,
  Lease as WireLease,
  LedgerHead as WireLedgerHead,
  NewReceiptInput,
  Obligation as WireObligation,
  Offer as WireOffer,
  Offers as WireOffers,
  OpenRequest as WireOpenRequest,
  Receipt as WireReceipt,
  RegisteredAgent as WireRegisteredAgent,
  Resource as WireResource,
  Task as WireTask,
  TaskLease as WireTaskLease,
  Tenant as WireTenant,
  Waiting as WireWaiting,
} from "../../src/sdk/wire.ts";
export type WireDied = Omit<Static<typeof shapes.died>, "blocked_by"> & { readonly blocked_by: readonly Blocker[] };
export type WirePaused = Static<typeof shapes.paused>;
