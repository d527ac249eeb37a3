/**
 * Something that happened to one record and matters to others. It is pushed where it happens, by code that does not
 * know whom it concerns, and followed up in aftermath.ts, which does. Nothing is pushed where it concerns nobody.
 */
import type { LeaseEntry, RequestEntry, ResourceEntry } from "./state.ts";
import type { ChoiceEntry, KindEntry, TaskEntry } from "./task-state.ts";

export type Consequence =
  | { readonly type: "lease_ended"; readonly lease: LeaseEntry }
  | { readonly type: "lease_weakened"; readonly lease: LeaseEntry }
  | { readonly type: "request_left"; readonly request: RequestEntry }
  | { readonly type: "units_freed"; readonly resource: ResourceEntry }
  /** The manifest of a task that waits for it would fit now (T10). */
  | { readonly type: "task_fits"; readonly task: TaskEntry }
  /** A fence, a quota or a cell no longer stands in the way of tasks that somebody had to act for. */
  | { readonly type: "readiness_changed" }
  /** Units of a type that the tenant has a quota on; tasks may be parked on it. */
  | { readonly type: "kind_freed"; readonly kind: KindEntry }
  /** One of the resources that tasks may choose from was freed (T10). */
  | { readonly type: "choice_freed"; readonly choice: ChoiceEntry }
  /** A cell is tearing down a lease of a task: for the task it is over (G6). */
  | { readonly type: "task_lease_closing"; readonly lease: LeaseEntry }
  /** All that the task's manifest names is set up; or it will not be, with what a cell said (T10). */
  | { readonly type: "task_bound"; readonly task: TaskEntry }
  | { readonly type: "task_unbound"; readonly task: TaskEntry; readonly failure: string | null };
