/** Who may ask at all. Whether a caller may act for this agent, on this lease, is decided by the kernel (L13). */
import type { Role } from "../../kernel/records.ts";

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
