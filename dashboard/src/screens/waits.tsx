/** Who waits for whom: every edge with its reason and the time left, as a graph and as a list that says the same. */
import { signal } from "@preact/signals";
import type { Blocker, OperationAnswers } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { isAbove, serverNow } from "../api/session.ts";
import { changes } from "../live/store.ts";
import { cancelRequest, revokeLease } from "../ui/actions.ts";
import {
  AgentLink,
  Badge,
  Chips,
  Facts,
  Left,
  Panel,
  ResourceName,
  Screen,
  Search,
  Since,
  TaskLink,
} from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { go, place } from "../ui/router.ts";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count } from "../ui/words.ts";
import { WaitGraph } from "./wait-graph.tsx";

export type Wait = OperationAnswers["list_waits"]["waits"][number];

/** One arrow: a waiter and one that is in its way, or nobody in particular. */
export interface Edge {
  readonly id: string;
  readonly wait: Wait;
  readonly blocker: Blocker | null;
  readonly task: string | null;
}

const chosen = signal<string | null>(null);
const shownMax = 500;

export function WaitsScreen() {
  const { query } = place.value;
  const waiter = query.get("waiter");
  const agent = query.get("agent") ?? "";
  const read = useReading(
    `waits ${waiter} ${agent}`,
    async () => {
      const { waits, next_cursor } = await call("list_waits", {
        limit: shownMax,
        waiter: waiter as Wait["waiter"] | null,
        agent_id: agent === "" ? null : agent,
      });
      return { edges: waits.flatMap(edgesOf), hasMore: next_cursor !== null, at: serverNow() };
    },
    changes.waits,
  );
  const { edges = [], hasMore = false, at = 0 } = read.value ?? {};
  const edge = edges.find(({ id }) => id === chosen.value) ?? null;
  return (
    <Screen title="Who waits for whom" tools={<Search name="agent" label="Waiting agent" />}>
      <div class="strip">
        <Chips
          name="waiter"
          label="Who waits"
          chips={[
            { value: "request", label: "requests" },
            { value: "agent", label: "agents that come back" },
            { value: "task", label: "tasks" },
          ]}
        />
        <span class="quiet">
          {count(edges.length)} edges{hasMore ? ` of the first ${shownMax} that wait` : ""}
        </span>
      </div>
      {read.error === null ? null : <p class="error">{read.error}</p>}
      <div class="split">
        <WaitGraph edges={edges} chosen={chosen} />
        <VirtualList
          items={edges}
          rowHeight={54}
          keyOf={({ id }) => id}
          label="Edges"
          empty={<p>{read.value === null ? "Reading…" : "Nobody waits. "}</p>}
          row={(one) => (
            <button
              type="button"
              class="edge"
              aria-pressed={one.id === chosen.value}
              onClick={() => (chosen.value = one.id)}
            >
              <span>
                <b>{nameOf(one.wait)}</b> → <b>{targetOf(one)}</b>
              </span>
              <span class="quiet">
                <Badge tone={toneOf(one.wait.reason)}>{one.wait.reason.replaceAll("_", " ")}</Badge>{" "}
                <TimeLeft edge={one} at={at} />
              </span>
            </button>
          )}
        />
      </div>
      {edge === null ? null : <EdgePanel edge={edge} at={at} />}
    </Screen>
  );
}

export function edgesOf(wait: Wait): readonly Edge[] {
  const id = wait.request_id ?? wait.task_id ?? wait.agent_id ?? "";
  const blockers = wait.blocked_by as readonly Blocker[];
  const tasks = wait.waits_for_tasks ?? [];
  if (blockers.length + tasks.length === 0) return [{ id, wait, blocker: null, task: null }];
  return [
    ...blockers.map((blocker, at) => ({ id: `${id} ${at}`, wait, blocker, task: null })),
    ...tasks.map((task) => ({ id: `${id} ${task}`, wait, blocker: null, task })),
  ];
}

export function nameOf({ agent_id, task_id }: Wait): string {
  return task_id ?? agent_id ?? "";
}

export function targetOf({ blocker, task, wait }: Edge): string {
  if (blocker !== null) return blocker.agent_id;
  if (task !== null) return task;
  return wait.reason === "delay" ? "a time" : wait.reason === "die" ? "its turn" : "a person";
}

export function toneOf(reason: string): string {
  if (["paused", "agent_paused", "resource_fenced", "cell_not_ready"].includes(reason)) return "waiting_for_person";
  return reason === "lost" ? "lost" : "blocked";
}

function TimeLeft({ edge, at }: { readonly edge: Edge; readonly at: number }) {
  const { wait, blocker } = edge;
  return (
    <>
      waits <Since at={wait.since} />
      {wait.ends_in_ms === undefined ? null : (
        <>
          {wait.reason === "die" ? ", asks again in" : wait.reason === "delay" ? ", begins in" : ", gives up in"}{" "}
          <Left until={at + wait.ends_in_ms} />
        </>
      )}
      {blocker?.expires_in_ms === undefined ? null : (
        <>
          ; lease ends in <Left until={at + blocker.expires_in_ms} />
        </>
      )}
    </>
  );
}

function EdgePanel({ edge, at }: { readonly edge: Edge; readonly at: number }) {
  const { wait, blocker, task } = edge;
  const may = isAbove.value;
  return (
    <Panel
      title="What would free it"
      actions={
        <>
          {may && blocker?.lease_id !== undefined ? (
            <ActionButton
              label="Revoke the lease"
              action={revokeLease(blocker.lease_id, blocker.agent_id, blocker.resource)}
            />
          ) : null}
          {may && wait.request_id !== undefined ? (
            <ActionButton label="Cancel the wait" action={cancelRequest(wait.request_id, nameOf(wait))} />
          ) : null}
          <button type="button" class="button" onClick={() => (chosen.value = null)}>
            Close
          </button>
        </>
      }
    >
      <p>{wait.detail}</p>
      <div class="pair">
        <div>
          <h3>{wait.task_id === undefined ? <AgentLink id={nameOf(wait)} /> : <TaskLink id={wait.task_id} />} wants</h3>
          <ul class="plain">
            {(wait.intents as readonly { predicate: string; resource: string }[]).map(({ predicate, resource }) => (
              <li key={`${predicate} ${resource}`}>
                <span class="quiet">{predicate}</span> <ResourceName name={resource} />
              </li>
            ))}
            {wait.intents.length === 0
              ? wait.resources.map((name) => (
                  <li key={name}>
                    <ResourceName name={name} />
                  </li>
                ))
              : null}
          </ul>
          <p class="quiet">{wait.purpose}</p>
        </div>
        <div>
          {blocker === null ? (
            <h3>
              {task === null ? (
                targetOf(edge)
              ) : (
                <button type="button" class="link" onClick={() => go(["tasks", task])}>
                  {task}
                </button>
              )}
            </h3>
          ) : (
            <>
              <h3>
                <AgentLink id={blocker.agent_id} />{" "}
                {blocker.lease_id === undefined ? "is before it in the queue for" : "holds"}
              </h3>
              <ul class="plain">
                <li>
                  <span class="quiet">{blocker.predicate}</span> <ResourceName name={blocker.resource} />
                </li>
              </ul>
              <p class="quiet">{blocker.purpose}</p>
              {blocker.expires_in_ms === undefined ? null : (
                <Facts
                  facts={[["Ends without a heartbeat in", <Left key="left" until={at + blocker.expires_in_ms} />]]}
                />
              )}
            </>
          )}
        </div>
      </div>
    </Panel>
  );
}
