/**
 * The graph of waits in columns: a waiter stands left of those it waits for. Wait-Die lets only older agents wait for
 * younger ones, so there is no cycle; after a change of strategy there may be edges back, which are drawn all the same.
 *
 *   waits for a waiter ──► waits ──► holds
 */
import type { Signal } from "@preact/signals";
import { lanes, lanesVersion } from "../live/store.ts";
import { TickingSpan } from "../ui/ticking.tsx";
import { activityWords, brief, middle } from "../ui/words.ts";
import { type Edge, endOf, nameOf, reasonWords, targetOf, toneOf } from "./wait-edges.ts";

interface Node {
  readonly name: string;
  readonly kind: "agent" | "task" | "other";
  readonly words: string;
  column: number;
  row: number;
}

/** All edges between two, drawn as one. */
interface Arrow {
  readonly first: Edge;
  readonly count: number;
  readonly from: Node;
  readonly to: Node;
}

const nodesMax = 60;
const columnsMax = 6;
const [columnWidth, rowHeight, boxWidth, boxHeight] = [286, 54, 152, 40];

interface Props {
  readonly edges: readonly Edge[];
  /** When they were read, by the server's clock. */
  readonly at: number;
  readonly chosen: Signal<string | null>;
}

export function WaitGraph({ edges, at, chosen }: Props) {
  if (edges.length === 0) return null;
  const { nodes, arrows, left } = layOut(edges);
  const columns = Math.max(...[...nodes.values()].map(({ column }) => column)) + 1;
  const rows = Math.max(...[...nodes.values()].map(({ row }) => row)) + 1;
  const x = (node: Node): number => (columns - 1 - node.column) * columnWidth + 10;
  const y = (node: Node): number => node.row * rowHeight + 10;
  const labels = new Map<Node, number>();
  const lines = arrows.map(({ first, count, from, to }) => {
    const [x1, y1, x2, y2] = [x(from) + boxWidth, y(from) + boxHeight / 2, x(to) - 6, y(to) + boxHeight / 2];
    const bend = Math.max(30, (x2 - x1) / 2);
    const path = `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
    // Where one waits for several, their words stand below each other.
    const nth = labels.get(from) ?? 0;
    labels.set(from, nth + 1);
    return { first, count, path, x: x1 + 10, y: nth === 0 ? y1 - 5 : y1 + 2 + 11 * nth };
  });
  return (
    <div class="graph">
      <svg
        width={(columns - 1) * columnWidth + boxWidth + 20}
        height={rows * rowHeight + 12}
        role="img"
        aria-label="Who waits for whom; the list beside it says the same"
      >
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M0,0 L8,4 L0,8 z" />
          </marker>
        </defs>
        {lines.map(({ first, count, path, x: labelX, y: labelY }) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the list beside it is the way for keyboards.
          <g
            key={first.id}
            class={`graph-edge ${toneOf(first.wait.reason)} ${first.id === chosen.value ? "chosen" : ""}`}
            onClick={() => (chosen.value = first.id)}
          >
            <path class="graph-hit" d={path} />
            <path class="graph-line" d={path} marker-end="url(#arrow)" />
            <text class="graph-label" x={labelX} y={labelY}>
              {reasonWords(first.wait.reason)}
              {count > 1 ? ` ×${count}` : ""}
              <TimeLeft edge={first} at={at} />
            </text>
          </g>
        ))}
        {[...nodes].map(([key, node]) => (
          <GraphNode key={key} node={node} x={x(node)} y={y(node)} />
        ))}
      </svg>
      {left > 0 ? <p class="quiet">{left} more edges are in the list.</p> : null}
    </div>
  );
}

function TimeLeft({ edge, at }: { readonly edge: Edge; readonly at: number }) {
  const until = endOf(edge, at);
  return until === null ? null : <TickingSpan words={(now) => `${until > now ? ` · ${brief(until - now)}` : ""}`} />;
}

function GraphNode({ node, x, y }: { readonly node: Node; readonly x: number; readonly y: number }) {
  lanesVersion.value;
  const activity = node.kind === "agent" ? lanes.get(node.name)?.activity : undefined;
  const words = activity === undefined ? node.words : activityWords[activity];
  return (
    <g class={`graph-node ${node.kind} ${activity ?? ""}`}>
      <title>{node.name}</title>
      <rect x={x} y={y} width={boxWidth} height={boxHeight} rx={7} />
      <rect class="graph-tone" x={x} y={y + 6} width={3} height={boxHeight - 12} rx={1.5} />
      <text x={x + 12} y={y + 17}>
        {middle(node.name, 19)}
      </text>
      <text class="graph-words" x={x + 12} y={y + 31}>
        {middle(words, 22)}
      </text>
    </g>
  );
}

/** In layers; or, where some wait in a circle, waiters on the left and all they wait for on the right. */
function layOut(edges: readonly Edge[]) {
  const layered = gather(edges, (name) => name);
  if (place(layered.nodes, layered.arrows)) return layered;
  const halved = gather(edges, (name, isTarget) => `${isTarget ? "to" : "from"} ${name}`);
  place(halved.nodes, halved.arrows);
  return halved;
}

/** Edges between the same two, for the same reason, are one arrow. */
function gather(edges: readonly Edge[], keyOf: (name: string, isTarget: boolean) => string) {
  const nodes = new Map<string, Node>();
  const arrows = new Map<string, Arrow>();
  let left = 0;
  for (const edge of edges) {
    const names = [keyOf(nameOf(edge.wait), false), keyOf(targetOf(edge), true)] as const;
    const key = `${names.join("\n")}\n${edge.wait.reason}`;
    const known = arrows.get(key);
    if (known !== undefined) {
      arrows.set(key, { ...known, count: known.count + 1 });
      continue;
    }
    if (nodes.size + names.filter((name) => !nodes.has(name)).length > nodesMax) {
      left++;
      continue;
    }
    const from = nodes.get(names[0]) ?? waiterOf(edge);
    const to = nodes.get(names[1]) ?? blockerOf(edge);
    nodes.set(names[0], from).set(names[1], to);
    arrows.set(key, { first: edge, count: 1, from, to });
  }
  return { nodes, arrows: [...arrows.values()], left };
}

function waiterOf({ wait }: Edge): Node {
  return nodeOf(nameOf(wait), wait.task_id === undefined ? "agent" : "task", "task");
}

function blockerOf(edge: Edge): Node {
  const kind = edge.blocker !== null ? "agent" : edge.task !== null ? "task" : "other";
  return nodeOf(targetOf(edge), kind, kind === "task" ? "must be done first" : "has to act");
}

function nodeOf(name: string, kind: Node["kind"], words: string): Node {
  return { name, kind, words: kind === "agent" ? "not registered" : words, column: 0, row: 0 };
}

/**
 * The column of a node is the longest way to one that waits for nobody; within it, it stands beside what it waits for.
 * Returns whether that is possible: in a circle nobody is first.
 */
function place(nodes: ReadonlyMap<string, Node>, arrows: readonly Arrow[]): boolean {
  const next = new Map<Node, Node[]>();
  for (const { from, to } of arrows) next.set(from, [...(next.get(from) ?? []), to]);
  const depths = new Map<Node, number>();
  let isPossible = true;
  const depthOf = (node: Node, path: ReadonlySet<Node>): number => {
    const known = depths.get(node);
    if (known !== undefined) return known;
    if (path.has(node)) {
      isPossible = false;
      return 0;
    }
    const further = new Set(path).add(node);
    const depth = Math.max(0, ...(next.get(node) ?? []).map((to) => depthOf(to, further) + 1));
    depths.set(node, depth);
    return depth;
  };
  for (const node of nodes.values()) node.column = Math.min(depthOf(node, new Set()), columnsMax - 1);
  const rowOf = (node: Node): number => {
    const rows = (next.get(node) ?? []).map(({ row }) => row);
    return rows.length === 0 ? 0 : rows.reduce((sum, row) => sum + row, 0) / rows.length;
  };
  for (let column = 0; column < columnsMax; column++) {
    const inIt = [...nodes.values()].filter((node) => node.column === column);
    const wanted = new Map(inIt.map((node) => [node, rowOf(node)]));
    inIt.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
    for (const [row, node] of inIt.entries()) node.row = row;
  }
  return isPossible;
}
