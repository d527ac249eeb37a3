/** The colours of a task's life. */
import type { Task } from "../../../src/sdk/wire.ts";

export const statusTones: Readonly<Record<Task["status"], string>> = {
  queued: "idle",
  retry_pending: "blocked",
  leased: "working",
  accepted: "working",
  succeeded: "done",
  failed: "lost",
  canceled: "idle",
  dead: "lost",
};
