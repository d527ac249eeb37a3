/** Resources as a tree, with heat where many hold and wait; declared ones with capacity, cell and fence. */
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { CellView, Lease, OperationAnswers, Resource, Wait } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { changes } from "../live/store.ts";
import { Badge, Chips, Screen, Search } from "../ui/bits.tsx";
import { useReading } from "../ui/reading.ts";
import { place } from "../ui/router.ts";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count } from "../ui/words.ts";
import { CellList, NodePanel, unitsOf } from "./resource-panel.tsx";

export interface TreeNode {
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
          empty={leases.value === null ? <p>Reading…</p> : <Nothing isFiltered={search !== "" || state !== null} />}
          row={(one, at) => <TreeRow node={one} hottest={hottest} isShown={(rows[at + 1]?.depth ?? 0) > one.depth} />}
        />
        {node === null ? <CellList cells={declared.value?.cells ?? []} /> : <NodePanel node={node} />}
      </div>
    </Screen>
  );
}

function Nothing({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <p>No resource matches.</p>;
  return (
    <>
      <h2>Nothing is held, and nothing is declared</h2>
      <dl class="next">
        <dt>
          <code>leasehold run FILE:/a.txt -- make</code>
        </dt>
        <dd>holds a file while a command runs</dd>
        <dt>
          <code>leasehold resources --help</code>
        </dt>
        <dd>declares what has units, such as GPUs</dd>
      </dl>
    </>
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

interface RowProps {
  readonly node: TreeNode;
  readonly hottest: number;
  /** Whether what is below it is shown. */
  readonly isShown: boolean;
}

function TreeRow({ node, hottest, isShown }: RowProps) {
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
          {node.children.size === 0 ? "" : isShown ? "▾" : "▸"}
        </span>
        <span class={node.depth === 0 ? "kind" : "path"}>{node.label}</span>
        {node.declared === null || node.declared.state === "READY" ? null : (
          <Badge tone={node.declared.state === "FENCED" ? "lost" : "blocked"}>
            {node.declared.state.toLowerCase()}
          </Badge>
        )}
        {node.declared?.capacity == null ? null : (
          <span class="quiet">
            {unitsOf(node)} of {node.declared.capacity} units
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
