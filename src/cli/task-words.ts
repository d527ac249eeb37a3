/** Tasks in words. */
import type { Explained, Task } from "../sdk/wire.ts";
import type { Colour } from "./paint.ts";
import { plain } from "./plain-text.ts";
import type { Column } from "./table.ts";

export function taskColour(status: Task["status"]): Colour {
  switch (status) {
    case "succeeded":
      return "green";
    case "failed":
    case "dead":
      return "red";
    case "retry_pending":
      return "yellow";
    case "queued":
    case "canceled":
      return "dim";
    case "leased":
    case "accepted":
      return "cyan";
  }
}

export const taskColumns: readonly Column<Task>[] = [
  { title: "TASK", cell: ({ task_id: id }) => id },
  { title: "TYPE", cell: ({ task_type: type }) => type, gives: "end" },
  { title: "STATUS", cell: ({ status }) => status, colour: ({ status }) => taskColour(status) },
  { title: "TRIES", cell: ({ attempts, max_attempts: max }) => `${attempts}/${max}` },
  {
    title: "WORKER",
    cell: ({ leases }) => leases.map(({ worker_id: worker }) => worker).join(" ") || "-",
    gives: "end",
  },
  { title: "FOR", cell: ({ principal_ai: principal }) => principal, gives: "end" },
  { title: "SUMMARY", cell: ({ task_summary: summary }) => summary ?? "", gives: "end" },
];

/** What it waits for comes as free JSON, so that a newer server can name more. */
export function explainedWords({ task_id: id, status, waiting_for: reasons }: Explained): string {
  const lines = reasons.map((reason) => {
    const { kind, detail } = (reason ?? {}) as { readonly kind?: unknown; readonly detail?: unknown };
    return typeof detail === "string" ? `${String(kind)}: ${detail}` : JSON.stringify(reason);
  });
  const head = `${id} is ${status}${lines.length === 0 ? ", and waits for nothing" : ", and waits for"}`;
  return [head, ...lines.map((line) => `  ${plain(line)}`)].join("\n");
}
