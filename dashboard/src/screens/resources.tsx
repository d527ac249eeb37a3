/** Resources as a tree, with heat where many hold and wait; declared ones with capacity, cell and fence. */
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { CellView, Lease, OperationAnswers, Resource } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { isAbove } from "../api/session.ts";
import { changes } from "../live/store.ts";
import { fenceResource, releaseLease, resetResource, revokeLease } from "../ui/actions.ts";
import { AgentLink, Badge, Chips, Left, Panel, Screen, Search, Since } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { place } from "../ui/router.ts";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count } from "../ui/words.ts";

type Wait = OperationAnswers["list_waits"]["waits"][number];

interface TreeNode {
  readonly name: string;
  readonly label: string;
  readonly depth: number;
  readonly children: Map<string, TreeNode>;
  readonly leases: Lease[];
  readonly waits: Wait[];
  declared: Resource | null;
  /** In the whole subtree. */
  held: number;
  waiting: number;
}

const leasesMax = 20_000;
const open = signal<ReadonlySet<string>>(new Set());
const chosen = signal<string | null>(null);

export function ResourcesScreen() {
  const { query } = place.value;
  const search = (query.get("q") ?? "").toLowerCase();
  const state = query.get("state");
  const leases = useReading("leases", readLeases, changes.leases);
  const waits = useReading("waits", async () => (await call("list_waits", { limit: 1_000 })).waits, changes.waits);
  const declared = useReading("resources", readDeclared, changes.resources);
  const root = useMemo(
    () => treeOf(leases.value ?? [], waits.value ?? [], declared.value?.resources ?? [], search, state),
    [leases.value, waits.value, declared.value, search, state],
  );
  const rows = flatten(root, open.value, search !== "" || state !== null);
  const hottest = Math.max(1, ...rows.map(({ waiting }) => waiting));
  const node = rows.find(({ name }) => name === chosen.value) ?? null;
  return (
    <Screen title="Resources" tools={<Search label="Name" />}>
      <div class="strip">
        <Chips
          name="state"
          label="State"
          chips={[
            { value: "FENCED", label: "fenced", tone: "lost" },
            { value: "WITHDRAWN", label: "withdrawn", tone: "blocked" },
            { value: "READY", label: "declared and ready", tone: "working" },
          ]}
        />
        <span class="quiet">
          {count(root.held)} leases, {count(root.waiting)} wait
        </span>
      </div>
      {leases.error === null ? null : <p class="error">{leases.error}</p>}
      <div class="split wide-left">
        <VirtualList
          items={rows}
          rowHeight={34}
          keyOf={({ name }) => name}
          label="Tree of resources"
          empty={<p>{leases.value === null ? "Reading…" : "Nothing is held, and nothing is declared."}</p>}
          row={(one) => <TreeRow node={one} hottest={hottest} />}
        />
        {node === null ? <CellList cells={declared.value?.cells ?? []} /> : <NodePanel node={node} />}
      </div>
    </Screen>
  );
}

async function readLeases(): Promise<readonly Lease[]> {
  const all: Lease[] = [];
  let cursor: string | null = null;
  do {
    const page: OperationAnswers["list_leases"] = await call("list_leases", { limit: 1_000, cursor });
    all.push(...page.leases);
    cursor = page.next_cursor;
  } while (cursor !== null && all.length < leasesMax);
  return all;
}

async function readDeclared(): Promise<{ resources: readonly Resource[]; cells: readonly CellView[] }> {
  const [{ resources }, { cells }] = await Promise.all([
    call("list_resources", { limit: 1_000 }),
    call("list_cells", { limit: 100 }),
  ]);
  return { resources, cells };
}

function newNode(name: string, label: string, depth: number): TreeNode {
  return { name, label, depth, children: new Map(), leases: [], waits: [], declared: null, held: 0, waiting: 0 };
}

function treeOf(
  leases: readonly Lease[],
  waits: readonly Wait[],
  resources: readonly Resource[],
  search: string,
  state: string | null,
): TreeNode {
  const root = newNode("", "", -1);
  const wanted = (name: string): boolean => search === "" || name.toLowerCase().includes(search);
  const pathTo = (name: string): readonly TreeNode[] => {
    const colon = name.indexOf(":");
    const parts = name
      .slice(colon + 1)
      .split("/")
      .filter((part) => part !== "");
    const path = [root];
    let whole = name.slice(0, colon + 1);
    for (const [at, part] of [name.slice(0, colon), ...parts].entries()) {
      if (at > 0) whole = `${whole}/${part}`;
      const parent = path.at(-1) ?? root;
      let child = parent.children.get(part);
      if (child === undefined) {
        child = newNode(whole, part, at);
        parent.children.set(part, child);
      }
      path.push(child);
    }
    return path;
  };
  const add = (name: string, put: (node: TreeNode) => void, count: (node: TreeNode) => void): void => {
    if (!wanted(name)) return;
    const path = pathTo(name);
    for (const node of path) count(node);
    const leaf = path.at(-1);
    if (leaf !== undefined) put(leaf);
  };
  const none = (): void => undefined;
  for (const resource of resources) {
    if (state === null || resource.state === state) add(resource.resource, (node) => (node.declared = resource), none);
  }
  if (state !== null) return root;
  for (const lease of leases)
    add(
      lease.resource,
      (node) => node.leases.push(lease),
      (node) => node.held++,
    );
  for (const wait of waits) {
    for (const name of new Set(wait.resources))
      add(
        name,
        (node) => node.waits.push(wait),
        (node) => node.waiting++,
      );
  }
  return root;
}

/** A node with one child and nothing of its own is not worth a click. */
function flatten(node: TreeNode, opened: ReadonlySet<string>, opensAll: boolean): readonly TreeNode[] {
  const rows: TreeNode[] = [];
  const visit = (one: TreeNode): void => {
    const children = [...one.children.values()].sort(
      (a, b) => b.waiting - a.waiting || b.held - a.held || (a.label < b.label ? -1 : 1),
    );
    for (const child of children) {
      rows.push(child);
      if (opensAll || isOpen(child, opened, children.length)) visit(child);
    }
  };
  visit(node);
  return rows;
}

/** The first levels are open until they are closed. */
function isOpen({ name, depth }: TreeNode, opened: ReadonlySet<string>, siblings: number): boolean {
  const isUsual = depth < 1 || siblings === 1;
  return opened.has(name) !== isUsual;
}

function TreeRow({ node, hottest }: { readonly node: TreeNode; readonly hottest: number }) {
  const heat = Math.min(1, node.waiting / hottest);
  const toggle = (): void => {
    const next = new Set(open.value);
    if (!next.delete(node.name)) next.add(node.name);
    open.value = next;
    chosen.value = node.name;
  };
  return (
    <button type="button" class="tree-row" aria-pressed={chosen.value === node.name} onClick={toggle} title={node.name}>
      <span class="tree-name" style={{ paddingInlineStart: `${node.depth * 18}px` }}>
        <span class="twist" aria-hidden="true">
          {node.children.size === 0 ? "·" : "▸"}
        </span>
        <span class={node.depth === 0 ? "kind" : "path"}>{node.label}</span>
        {node.declared === null || node.declared.state === "READY" ? null : (
          <Badge tone={node.declared.state === "FENCED" ? "lost" : "blocked"}>
            {node.declared.state.toLowerCase()}
          </Badge>
        )}
        {node.declared?.capacity == null ? null : (
          <span class="quiet">
            {node.leases.reduce((sum, { units }) => sum + units, 0)} of {node.declared.capacity} units
          </span>
        )}
      </span>
      <span class="heat" aria-hidden="true">
        <span style={{ transform: `scaleX(${heat.toFixed(3)})` }} />
      </span>
      <span class="tree-count">
        {node.held === 0 ? "" : `${count(node.held)} held`}
        {node.held > 0 && node.waiting > 0 ? " · " : ""}
        {node.waiting === 0 ? "" : `${count(node.waiting)} wait`}
      </span>
    </button>
  );
}

function NodePanel({ node }: { readonly node: TreeNode }) {
  const { declared } = node;
  const may = isAbove.value && node.depth > 0;
  return (
    <Panel
      title={node.name}
      actions={
        may ? (
          declared?.state === "FENCED" ? (
            <ActionButton label="Reset" action={resetResource(node.name)} />
          ) : (
            <ActionButton label="Fence" action={fenceResource(node.name)} />
          )
        ) : null
      }
    >
      {declared === null ? null : (
        <p class="quiet">
          {declared.state.toLowerCase()}
          {declared.cell === null ? "" : `, on cell ${declared.cell}`}
          {declared.driver == null ? "" : ` (${declared.driver})`}
          {declared.reason === null ? "" : `: ${declared.reason}`}
        </p>
      )}
      <h3>Held by</h3>
      <ul class="plain">
        {node.leases.slice(0, 50).map((lease) => (
          <li key={lease.id} class="line">
            <span>
              <AgentLink id={lease.agent_id} /> <span class="quiet">{lease.predicate}</span>
              {lease.units > 1 ? ` ${lease.units} units` : ""} · <Left until={Date.parse(lease.expires_at)} /> left
              {lease.coordinate === undefined ? "" : ` · ${lease.coordinate}`}
              <span class="quiet"> {lease.purpose}</span>
            </span>
            {isAbove.value ? (
              <span class="actions">
                <ActionButton label="Release" action={releaseLease(lease.id, lease.resource)} />
                <ActionButton label="Revoke" action={revokeLease(lease.id, lease.agent_id, lease.resource)} />
              </span>
            ) : null}
          </li>
        ))}
        {node.leases.length === 0 ? (
          <li class="quiet">{node.held === 0 ? "Nobody." : "Nobody; what is below it is held."}</li>
        ) : null}
      </ul>
      <h3>Queue</h3>
      <ol class="plain">
        {node.waits.slice(0, 50).map((wait) => (
          <li key={wait.request_id ?? wait.task_id ?? wait.agent_id}>
            {wait.task_id === undefined ? <AgentLink id={wait.agent_id ?? ""} /> : wait.task_id}{" "}
            <span class="quiet">
              {wait.reason} · <Since at={wait.since} />
            </span>
          </li>
        ))}
        {node.waits.length === 0 ? <li class="quiet">Empty.</li> : null}
      </ol>
    </Panel>
  );
}

function CellList({ cells }: { readonly cells: readonly CellView[] }) {
  if (cells.length === 0)
    return (
      <Panel title="Choose a resource">
        <p class="quiet">Its holders and its queue are shown here.</p>
      </Panel>
    );
  return (
    <Panel title="Cells">
      <ul class="plain">
        {cells.map(({ cell, state, connected, resources, since, reason }) => (
          <li key={cell}>
            <b>{cell}</b>{" "}
            <Badge tone={state === "READY" && connected ? "working" : "lost"}>{state.toLowerCase()}</Badge>{" "}
            <span class="quiet">
              {reason} since <Since at={since} /> · {resources.filter(({ ready }) => ready).length} of{" "}
              {resources.length} ready
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
