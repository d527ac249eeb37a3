/** `leasehold/sdk`: what a program needs to hold leases, work on tasks and watch what happens. */

export type { Clock } from "../keeper/clock.ts";
export { fileResource } from "../names/file-resource.ts";
export { NamingProblem } from "../names/project-file.ts";
export type { AcquireOptions, Manifest } from "./acquiring.ts";
export { Agent, type AgentOptions, type ResumeOptions, type ResumeWorkOptions } from "./agent.ts";
export type { DigestSource } from "./checkpoints.ts";
export * from "./client.ts";
export type { DigestFile, DigestInput, Merge, Resumed, SavedDigest, VerifiedLease } from "./digest.ts";
export * from "./errors.ts";
export type { EventsOptions, LeaseholdEvent } from "./events.ts";
export type { Hold, HoldOptions } from "./hold.ts";
export type { Budget } from "./holding.ts";
export type { FileData, FileEntry, LeaseFile, LeaseMemory, Part } from "./lease-bytes.ts";
export { type LeaseEndCode, LeaseLost, type LossReason } from "./lease-lost.ts";
export type { LeaseDatagrams, LeaseSocket } from "./lease-streams.ts";
export { LiveLease, type LiveNarrowing } from "./live-lease.ts";
export {
  type EscalationClass,
  type StopReason,
  TaskEscalated,
  TaskFailed,
  type TaskOutcome,
  type TaskResult,
  TaskStopped,
} from "./task-outcome.ts";
export type { TaskContext, TaskEnd, TaskHandler } from "./task-run.ts";
export { type InspectedToken, inspectToken, type Narrowing, narrow } from "./tokens.ts";
export type * from "./wire.ts";
export type { Held, WithLeaseOptions } from "./with-lease.ts";
export { Worker, type WorkerBackOff, type WorkerOptions } from "./worker.ts";
