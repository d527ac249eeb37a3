/** What goes over the wire, as TypeScript types of the same schemas; for the SDK, the CLI and the dashboard. Types only. */

import type { registerAgent, transitionAgent, verifyAll } from "../agents/agents.ts";
import type { resumeAgent, saveDigest } from "../agents/digests.ts";
import type { acquire, cancelRequest, getRequest } from "../leases/acquiring.ts";
import type { releaseAll, releaseLease, revoke } from "../leases/ending.ts";
import type { heartbeat, heartbeatAll, renewLease } from "../leases/holding.ts";
import type * as shapes from "../leases/shapes.ts";
import type { newReceipt } from "../receipts/receipt-fields.ts";
import type * as receiptShapes from "../receipts/receipt-shapes.ts";
import type { Static, TSchema } from "../schema/schema.ts";
import type { newTask } from "../tasks/task-fields.ts";
import type * as taskShapes from "../tasks/task-shapes.ts";

export type WireLease = Static<typeof shapes.lease>;
export type WireLeaseEnd = Static<typeof shapes.leaseEnd>;
export type WireBlocker = Static<typeof shapes.blocker>;
export type WireObservationUpdate = Static<typeof shapes.observationUpdate>;
export type WireGranted = Static<typeof shapes.granted>;
export type WireWaiting = Static<typeof shapes.waiting>;
export type WireOpenRequest = Static<typeof shapes.openRequest>;
export type WireDied = Static<typeof shapes.died>;
export type WirePaused = Static<typeof shapes.paused>;
export type WireAgent = Static<typeof shapes.agent>;
export type WireRegisteredAgent = Static<typeof shapes.registered>;
export type WireDigest = Static<typeof shapes.digest>;
export type WireResource = Static<typeof shapes.resource>;
export type WireTenant = Static<typeof shapes.tenant>;
export type WireKey = Static<typeof shapes.key>;
export type WireTask = Static<typeof taskShapes.task>;
export type WireCreatedTask = Static<typeof taskShapes.createdTask>;
export type WireOffer = Static<typeof taskShapes.offer>;
export type WireOffers = Static<typeof taskShapes.offers>;
export type WireTaskLease = Static<typeof taskShapes.taskLease>;
export type WireReceipt = Static<typeof receiptShapes.receipt>;
export type WireReceiptMark = Static<typeof receiptShapes.receiptMark>;
export type WireObligation = Static<typeof receiptShapes.obligation>;
export type WireLedgerHead = Static<typeof receiptShapes.ledgerHead>;
export type NewTaskInput = Static<typeof newTask>;
export type NewReceiptInput = Static<typeof newReceipt>;

/** An operation's input, as the caller writes it: `InputOf<typeof acquire>`. */
export type InputOf<O extends { readonly input: TSchema }> = Static<O["input"]>;

export type AcquireInput = InputOf<typeof acquire>;
export type GetRequestInput = InputOf<typeof getRequest>;
export type CancelRequestInput = InputOf<typeof cancelRequest>;
export type RegisterAgentInput = InputOf<typeof registerAgent>;
export type TransitionAgentInput = InputOf<typeof transitionAgent>;
export type VerifyAllInput = InputOf<typeof verifyAll>;
export type SaveDigestInput = InputOf<typeof saveDigest>;
export type ResumeAgentInput = InputOf<typeof resumeAgent>;
export type HeartbeatInput = InputOf<typeof heartbeat>;
export type HeartbeatAllInput = InputOf<typeof heartbeatAll>;
export type RenewLeaseInput = InputOf<typeof renewLease>;
export type ReleaseLeaseInput = InputOf<typeof releaseLease>;
export type ReleaseAllInput = InputOf<typeof releaseAll>;
export type RevokeInput = InputOf<typeof revoke>;
