/**
 * The graph of waits in columns: a waiter stands left of those it waits for. Wait-Die lets only older agents wait for
 * younger ones, so there is no cycle; after a change of strategy there may be edges back, which are drawn all the same.
 */
import type { Signal } from "@preact/signals";
import { middle } from "../ui/words.ts";
import { type Edge, nameOf, targetOf, toneOf } from "./waits.tsx";

interface Node {
  readonly name: string;
  readonly isTask: boolean;
  column: number;
  row: number;
}

const nodesMax = 60;
const [columnWidth, rowHeight, boxWidth, boxHeight] = [220, 44, 160, 28];

export function WaitGraph({
  edges,
  chosen,
}: {
  readonly edges: readonly Edge[];
  readonly chosen: Signal<string | null>;
}) {
  if (edges.length === 0) return null;
  const { nodes, drawn } = layOut(edges);
  const columns = Math.max(...[...nodes.values()].map(({ column }) => column)) + 1;
  const rows = Math.max(...[...nodes.values()].map(({ row }) => row)) + 1;
  const x = (node: Node): number => (columns - 1 - node.column) * columnWidth + 8;
  const y = (node: Node): number => node.row * rowHeight + 8;
  return (
    <div class="graph">
      <svg width={columns * columnWidth} height={rows * rowHeight + 8} aria-hidden="true">
        {drawn.map((edge) => {
          const from = nodes.get(nameOf(edge.wait));
          const to = nodes.get(targetOf(edge));
          if (from === undefined || to === undefined) return null;
          const [x1, y1, x2, y2] = [x(from) + boxWidth, y(from) + boxHeight / 2, x(to), y(to) + boxHeight / 2];
          const bend = Math.max(30, (x2 - x1) / 2);
          const path = `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
          const state = edge.id === chosen.value ? "chosen" : "";
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: the list beside it is the way for keyboards.
            <g
              key={edge.id}
              class={`graph-edge ${toneOf(edge.wait.reason)} ${state}`}
              onClick={() => (chosen.value = edge.id)}
            >
              <path class="graph-hit" d={path} />
              <path class="graph-line" d={path} />
            </g>
          );
        })}
        {[...nodes.values()].map((node) => (
          <g key={node.name} class={node.isTask ? "graph-node task" : "graph-node"}>
            <rect x={x(node)} y={y(node)} width={boxWidth} height={boxHeight} rx={6} />
            <text x={x(node) + 10} y={y(node) + 18}>
              {middle(node.name, 22)}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

/** The column of a node is the longest way to one that waits for nobody. */
function layOut(edges: readonly Edge[]): {
  readonly nodes: ReadonlyMap<string, Node>;
  readonly drawn: readonly Edge[];
} {
  const nodes = new Map<string, Node>();
  const drawn: Edge[] = [];
  for (const edge of edges) {
    const names = [nameOf(edge.wait), targetOf(edge)];
    if (nodes.size + names.filter((name) => !nodes.has(name)).length > nodesMax) continue;
    for (const [at, name] of names.entries()) {
      const isTask = at === 0 ? edge.wait.waiter === "task" : edge.task !== null;
      if (!nodes.has(name)) nodes.set(name, { name, isTask, column: 0, row: 0 });
    }
    drawn.push(edge);
  }
  const next = new Map<string, string[]>();
  for (const edge of drawn) {
    const from = nameOf(edge.wait);
    next.set(from, [...(next.get(from) ?? []), targetOf(edge)]);
  }
  const depths = new Map<string, number>();
  const depthOf = (name: string, path: ReadonlySet<string>): number => {
    const known = depths.get(name);
    if (known !== undefined || path.has(name)) return known ?? 0;
    const further = new Set(path).add(name);
    const depth = Math.max(0, ...(next.get(name) ?? []).map((to) => depthOf(to, further) + 1));
    depths.set(name, depth);
    return depth;
  };
  const filled: number[] = [];
  for (const node of nodes.values()) node.column = Math.min(depthOf(node.name, new Set()), 5);
  for (const node of [...nodes.values()].sort((a, b) => a.column - b.column)) {
    node.row = filled[node.column] ?? 0;
    filled[node.column] = node.row + 1;
  }
  return { nodes, drawn };
}
