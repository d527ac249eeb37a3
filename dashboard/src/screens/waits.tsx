/** Who waits for whom: every edge with its reason and the time left, as a graph and as a list that says the same. */
import { signal } from "@preact/signals";
import type { Wait } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { serverNow } from "../api/session.ts";
import { changes } from "../live/store.ts";
import { Badge, Chips, Screen, Search } from "../ui/bits.tsx";
import { useReading } from "../ui/reading.ts";
import { place } from "../ui/router.ts";
import { Left, Since } from "../ui/ticking.tsx";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count, middle } from "../ui/words.ts";
import { type Edge, edgesOf, endWords, nameOf, reasonWords, targetOf, toneOf } from "./wait-edges.ts";
import { WaitGraph } from "./wait-graph.tsx";
import { EdgePanel } from "./wait-panel.tsx";

const chosen = signal<string | null>(null);
const shownMax = 500;

export function WaitsScreen() {
  const { query } = place.value;
  const waiter = query.get("waiter") as Wait["waiter"] | null;
  const [agent, resource] = [query.get("agent") ?? "", query.get("resource") ?? ""];
  const read = useReading(
    `waits ${waiter} ${agent} ${resource}`,
    async () => {
      const { waits, next_cursor } = await call("list_waits", {
        limit: shownMax,
        waiter,
        agent_id: agent === "" ? null : agent,
        resource: resource === "" ? null : resource,
      });
      return { waiting: waits.length, edges: waits.flatMap(edgesOf), hasMore: next_cursor !== null, at: serverNow() };
    },
    changes.waits,
  );
  const { edges = [], waiting = 0, hasMore = false, at = 0 } = read.value ?? {};
  const edge = edges.find(({ id }) => id === chosen.value) ?? null;
  const names = [...new Set(edges.map((one) => nameOf(one.wait)))].sort();
  return (
    <Screen
      title="Who waits for whom"
      tools={
        <>
          <Search name="agent" label="Waiting agent" suggestions={names} />
          <Search name="resource" label="Resource, such as FILE:/src/**" />
        </>
      }
    >
      <div class="strip">
        <Chips
          name="waiter"
          label="Who waits"
          chips={[
            { value: "request", label: "requests in line" },
            { value: "agent", label: "agents that come back" },
            { value: "task", label: "tasks" },
          ]}
        />
        <span class="quiet">
          <b>{count(waiting)}</b>
          {hasMore ? " and more" : ""} {waiting === 1 ? "waits" : "wait"}, {count(edges.length)}{" "}
          {edges.length === 1 ? "edge" : "edges"}
        </span>
      </div>
      {read.error === null ? null : <p class="error">{read.error}</p>}
      <div class="split">
        <WaitGraph edges={edges} at={at} chosen={chosen} />
        <div class="stack">
          <VirtualList
            items={edges}
            rowHeight={62}
            keyOf={({ id }) => id}
            label="Edges"
            empty={
              read.value === null ? <p>Reading…</p> : <Nobody isFiltered={agent + resource !== "" || waiter !== null} />
            }
            row={(one) => <EdgeRow edge={one} at={at} />}
          />
          {edge === null ? null : <EdgePanel edge={edge} at={at} close={() => (chosen.value = null)} />}
        </div>
      </div>
    </Screen>
  );
}

function Nobody({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <p>Nobody of these waits.</p>;
  return (
    <>
      <h2>Nobody waits</h2>
      <p>
        Whatever agents ask for, they get. <code>leasehold top</code> shows the same in a terminal.
      </p>
    </>
  );
}

function EdgeRow({ edge, at }: { readonly edge: Edge; readonly at: number }) {
  const { wait, blocker } = edge;
  const resource = blocker?.resource ?? wait.resources[0];
  return (
    <button
      type="button"
      class="edge"
      aria-pressed={edge.id === chosen.value}
      onClick={() => (chosen.value = edge.id === chosen.value ? null : edge.id)}
    >
      <span>
        <b>{middle(nameOf(wait), 26)}</b> <span class="quiet">→</span> <b>{middle(targetOf(edge), 26)}</b>{" "}
        {resource === undefined ? null : <span class="resource quiet">{middle(resource, 40)}</span>}
      </span>
      <span class="quiet">
        <Badge tone={toneOf(wait.reason)}>{reasonWords(wait.reason)}</Badge> <Since at={wait.since} />
        {wait.ends_in_ms === undefined ? null : (
          <>
            , {endWords(wait.reason)} <Left until={at + wait.ends_in_ms} />
          </>
        )}
        {blocker?.expires_in_ms === undefined ? null : (
          <>
            ; its lease has <Left until={at + blocker.expires_in_ms} />
          </>
        )}
      </span>
    </button>
  );
}
