/** Tasks: filters in the address, more rows as they are scrolled to, and actions on all that match. */
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { BulkOperation, Task, TaskFilterInput } from "../../../src/sdk/wire.ts";
import { call, wordsOf } from "../api/client.ts";
import { isAbove } from "../api/session.ts";
import { changes, isPaused, overview } from "../live/store.ts";
import { bulk } from "../ui/actions.ts";
import { Badge, Chips, Screen, Search, Since } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { hrefOf, place } from "../ui/router.ts";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count, middle } from "../ui/words.ts";

export const statusTones: Readonly<Record<string, string>> = {
  queued: "idle",
  retry_pending: "blocked",
  leased: "working",
  accepted: "working",
  succeeded: "done",
  failed: "lost",
  canceled: "idle",
  dead: "lost",
};

const pageSize = 200;

type Filter = TaskFilterInput;

/** Rows as they were read, page by page; the first page is read again when tasks change. */
class TaskList {
  readonly rows = signal<readonly Task[]>([]);
  readonly error = signal<string | null>(null);
  readonly isRead = signal(false);
  private readonly filter: Filter;
  private cursor: string | null = null;
  private isReading = false;
  private readAt = 0;

  constructor(filter: Filter) {
    this.filter = filter;
  }

  async readMore(): Promise<void> {
    if (this.isReading || (this.isRead.peek() && this.cursor === null)) return;
    await this.read(this.cursor, (tasks) => [...this.rows.peek(), ...tasks]);
  }

  /** What is new comes first, and what is known is replaced; nothing jumps. */
  async refresh(): Promise<void> {
    if (this.isReading || !this.isRead.peek() || Date.now() - this.readAt < 1_000) return;
    const { cursor } = this;
    await this.read(null, (tasks) => {
      const fresh = new Map(tasks.map((task) => [task.task_id, task]));
      const kept = this.rows.peek().map((task) => fresh.get(task.task_id) ?? task);
      const known = new Set(kept.map(({ task_id }) => task_id));
      return [...tasks.filter(({ task_id }) => !known.has(task_id)), ...kept];
    });
    this.cursor = cursor;
  }

  private async read(cursor: string | null, merge: (tasks: readonly Task[]) => readonly Task[]): Promise<void> {
    this.isReading = true;
    try {
      const answer = await call("list_tasks", {
        ...this.filter,
        limit: pageSize,
        cursor,
      });
      this.cursor = answer.next_cursor;
      this.rows.value = merge(answer.tasks);
      this.error.value = null;
    } catch (error) {
      this.error.value = wordsOf(error);
    }
    this.readAt = Date.now();
    this.isRead.value = true;
    this.isReading = false;
  }
}

export function TasksScreen() {
  const { query } = place.value;
  const filter = Object.fromEntries(
    [
      ["status", query.get("status")],
      ["task_type", query.get("type")],
      ["search", query.get("q")],
    ].filter(([, value]) => value !== null && value !== ""),
  ) as Filter;
  const key = JSON.stringify(filter);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key is the filter.
  const list = useMemo(() => new TaskList(filter), [key]);
  useEffect(() => {
    const timer = setTimeout(() => void list.readMore(), 150);
    const stop = changes.tasks.subscribe(() => void (isPaused.peek() || list.refresh()));
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [list]);
  const types = [...new Set(list.rows.value.map(({ task_type }) => task_type))].sort();
  const figures = overview.value?.tasks as Readonly<Record<string, number>> | undefined;
  const statuses = Object.keys(statusTones);
  const words = Object.entries(filter)
    .map(([name, value]) => `${name.replace("task_", "")} ${value}`)
    .join(" and ");
  return (
    <Screen
      title="Tasks"
      tools={
        <>
          <Search name="type" label="Type" suggestions={types} />
          <Search label="Search in summary, body and inputs" />
        </>
      }
    >
      <div class="strip">
        <Chips
          name="status"
          label="Status"
          chips={statuses.map((value) => ({
            value,
            label: value.replace("_", " "),
            count: figures?.[value],
            tone: statusTones[value] ?? "",
          }))}
        />
        {isAbove.value && Object.keys(filter).length > 0 ? (
          <span class="actions">
            <ActionButton
              label="Cancel all that match"
              action={bulk("cancel", filter, words, (id) => (operation.value = { id, view: null }))}
            />
            {filter.status === "dead" ? (
              <ActionButton
                label="Redrive all that match"
                action={bulk("redrive", filter, words, (id) => (operation.value = { id, view: null }))}
              />
            ) : null}
          </span>
        ) : null}
      </div>
      <Progress />
      {list.error.value === null ? null : <p class="error">{list.error.value}</p>}
      <VirtualList
        items={list.rows.value}
        rowHeight={50}
        keyOf={({ task_id }) => task_id}
        label="Tasks"
        onEnd={() => void list.readMore()}
        empty={<p>{list.isRead.value ? "No task matches." : "Reading…"}</p>}
        row={(task) => <TaskRow task={task} />}
      />
    </Screen>
  );
}

function TaskRow({ task }: { readonly task: Task }) {
  return (
    <a class="task-row" href={hrefOf(["tasks", task.task_id])}>
      <Badge tone={statusTones[task.status] ?? ""}>{task.status.replace("_", " ")}</Badge>
      <span class="task-what">
        <b>{task.task_type}</b> <span>{task.task_summary}</span>{" "}
        <span class="quiet mono">{middle(task.task_id, 20)}</span>
      </span>
      <span class="quiet">
        {task.last_worker_id ?? ""} {task.attempts > 0 ? `attempt ${task.attempts} of ${task.max_attempts}` : ""}
      </span>
      <span class="quiet">
        <Since at={task.created_at} />
      </span>
    </a>
  );
}

const operation = signal<{ readonly id: string; readonly view: BulkOperation | null } | null>(null);
const pollMs = 400;

/** How far an action on all that match is. */
function Progress() {
  const current = operation.value;
  const id = current?.id;
  useEffect(() => {
    if (id === undefined) return;
    let timer = 0;
    const poll = async (): Promise<void> => {
      try {
        const view = await call("get_operation", { operation_id: id });
        operation.value = { id, view };
        if (view.state === "done" || view.state === "failed") return;
      } catch {
        // It is asked for again: the server may be restarting.
      }
      timer = window.setTimeout(() => void poll(), pollMs);
    };
    void poll();
    return () => clearTimeout(timer);
  }, [id]);
  if (current === null || current.view === null) return null;
  const { state, matched, done, failed } = current.view;
  return (
    <p class="progress" role="status">
      <progress max={Math.max(1, matched)} value={done + failed} aria-label="Progress" /> {count(done)} of{" "}
      {count(matched)} done
      {failed > 0 ? `, ${count(failed)} refused` : ""} · {state}{" "}
      <button type="button" class="link" onClick={() => (operation.value = null)}>
        Hide
      </button>
    </p>
  );
}
