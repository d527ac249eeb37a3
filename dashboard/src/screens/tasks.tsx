/** Tasks: filters in the address, more rows as they are scrolled to, and actions on all that match. */
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { BulkOperation, Task, TaskFilterInput } from "../../../src/sdk/wire.ts";
import { call, wordsOf } from "../api/client.ts";
import { isAbove } from "../api/session.ts";
import { isPaused } from "../live/pausing.ts";
import { changes, overview } from "../live/store.ts";
import { bulk } from "../ui/actions.ts";
import { Badge, Chips, Screen } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { FilterBar } from "../ui/filter-bar.tsx";
import { useReading } from "../ui/reading.ts";
import { hrefOf, place } from "../ui/router.ts";
import { Since } from "../ui/ticking.tsx";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count, middle } from "../ui/words.ts";
import { statusTones } from "./task-status.ts";

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

/** What the address calls a filter, and the field of the API that it is. */
const fieldOf = {
  status: "status",
  type: "task_type",
  principal: "principal_ai",
  worker: "worker_id",
  after: "created_after",
  before: "created_before",
  q: "search",
} as const;

function filterOf(query: URLSearchParams): Filter {
  const given = Object.entries(fieldOf).flatMap(([name, field]) => {
    const value = query.get(name) ?? "";
    return value === "" ? [] : [[field, value] as const];
  });
  return Object.fromEntries(given) as Filter;
}

export function TasksScreen() {
  const { query } = place.value;
  const filter = filterOf(query);
  const key = JSON.stringify(filter);
  // The key is the filter.
  const list = useMemo(() => new TaskList(filter), [key]);
  useEffect(() => {
    const timer = setTimeout(() => void list.readMore(), 150);
    const stop = changes.tasks.subscribe(() => void (isPaused.peek() || list.refresh()));
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [list]);
  const known = useReading("task filters", readKnown);
  const values = (of: (task: Task) => string | null, more: readonly string[] = []): readonly string[] =>
    [...new Set([...list.rows.value.flatMap((task) => of(task) ?? []), ...more])].sort();
  const figures = overview.value?.tasks as Readonly<Record<string, number>> | undefined;
  const words = Object.entries(filter)
    .map(([name, value]) => `${name.replace(/^task_|_ai$|_id$/, "").replace("_", " ")} ${value}`)
    .join(" and ");
  return (
    <Screen
      title="Tasks"
      tools={
        <FilterBar
          label="type:build, worker:…, or words in its inputs"
          fields={[
            { name: "type", suggestions: values((task) => task.task_type, known.value?.types) },
            { name: "principal", suggestions: values((task) => task.principal_ai) },
            { name: "worker", suggestions: values((task) => task.last_worker_id, known.value?.workers) },
            { name: "after", suggestions: [] },
            { name: "before", suggestions: [] },
          ]}
        />
      }
    >
      <div class="strip">
        <Chips
          name="status"
          label="Status"
          chips={Object.entries(statusTones).map(([value, tone]) => ({
            value,
            label: value === "dead" ? "dead letters" : value.replace("_", " "),
            count: figures?.[value],
            tone,
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
        rowHeight={44}
        keyOf={({ task_id }) => task_id}
        label="Tasks"
        onEnd={() => void list.readMore()}
        empty={list.isRead.value ? <NoTask isFiltered={key !== "{}"} /> : <p>Reading…</p>}
        row={(task) => <TaskRow task={task} />}
      />
    </Screen>
  );
}

function NoTask({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <p>No task matches. Take a filter away to see more.</p>;
  return (
    <>
      <h2>No task yet</h2>
      <dl class="next">
        <dt>
          <code>leasehold tasks add build --summary "…"</code>
        </dt>
        <dd>adds one</dd>
        <dt>
          <code>leasehold work --help</code>
        </dt>
        <dd>says how a worker gets them</dd>
      </dl>
    </>
  );
}

function TaskRow({ task }: { readonly task: Task }) {
  return (
    <a class="task-row" href={hrefOf(["tasks", task.task_id])}>
      <Badge tone={statusTones[task.status]}>{task.status.replace("_", " ")}</Badge>
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

/** Names to suggest, beside those on the page. */
async function readKnown(): Promise<{ readonly types: readonly string[]; readonly workers: readonly string[] }> {
  const [{ task_types: types }, { workers }] = await Promise.all([
    call("list_task_types", { limit: 500 }),
    call("list_workers", { limit: 500 }),
  ]);
  return { types: types.map(({ task_type }) => task_type), workers: workers.map(({ worker_id }) => worker_id) };
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
