/** Who may ask at all. Whether a caller may act for this agent, on this lease, is decided by the kernel (L13). */
import type { Role } from "../../kernel/contract/records.ts";

/** Runs the whole service. */
export const operating: readonly Role[] = ["operator"];
/** Stands above agents. */
export const above: readonly Role[] = ["operator", "supervisor"];
/** Acts for an agent: as the agent, or above it. */
export const acting: readonly Role[] = ["operator", "supervisor", "agent"];
/** Looks at what goes on in its tenant. */
export const reading: readonly Role[] = ["operator", "supervisor", "agent", "reader"];
/** Looks at what only those who run or watch it need. */
export const watching: readonly Role[] = ["operator", "supervisor", "reader"];
/** Gives work to others. */
export const delegating: readonly Role[] = ["operator", "supervisor", "agent", "worker"];
/** Does work: as the worker_ids that it used first, or above them. */
export const working: readonly Role[] = ["operator", "supervisor", "worker"];
/** Speaks for a cell: the cell itself, or above it. */
export const hosting: readonly Role[] = ["operator", "supervisor", "cell"];
/** Is shown tokens, and asks whether they are good. */
export const guarding: readonly Role[] = ["operator", "supervisor", "agent", "worker", "reader", "cell"];
/** Looks at tasks and receipts. */
export const following: readonly Role[] = ["operator", "supervisor", "agent", "worker", "reader"];
