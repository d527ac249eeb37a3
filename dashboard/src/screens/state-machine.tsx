/**
 * A1 as a picture: the way of a unit of work from left to right; below it, what interrupts it.
 *
 *   PLANNING ─► ACQUIRING ─► EXECUTING ─► VERIFYING ─► COMPLETED
 *                  │ ▲           │ ▲          └─────┐
 *   DIE_RESTART   PAUSED ───────────┘            ABORTED
 */
const [boxWidth, boxHeight, columnWidth, rowHeight] = [98, 32, 122, 66];

const boxes: readonly (readonly [state: string, column: number, row: number])[] = [
  ["PLANNING", 0, 0],
  ["ACQUIRING", 1, 0],
  ["EXECUTING", 2, 0],
  ["VERIFYING", 3, 0],
  ["COMPLETED", 4, 0],
  ["DIE_RESTART", 0, 1],
  ["PAUSED", 1, 1],
  ["ABORTED", 3, 1],
];

const right = (column: number): string => `M${column * columnWidth + boxWidth + 2},18h${columnWidth - boxWidth - 8}`;
const arrows = [
  ...[0, 1, 2, 3].map(right),
  // Down to PAUSED and up again; across to EXECUTING and back.
  ...["M162,36v28", "M182,66v-26", "M222,74L276,40", "M262,36L218,66"],
  // Aborted from where it executes or verifies.
  ...["M310,36L378,64", "M416,36v28"],
  // A restarted one comes back where it was.
  "M100,82h18",
];

export function StateMachine({ state }: { readonly state: string }) {
  return (
    <svg class="machine" viewBox="0 0 590 104" role="img" aria-label={`It is in ${state}.`}>
      <defs>
        <marker id="step" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">
          <path d="M0,0 L6,3 L0,6 z" />
        </marker>
      </defs>
      {arrows.map((path) => (
        <path key={path} d={path} marker-end="url(#step)" />
      ))}
      {boxes.map(([name, column, row]) => (
        <g key={name} class={name === state ? "here" : ""}>
          <rect x={column * columnWidth + 1} y={row * rowHeight + 2} width={boxWidth} height={boxHeight} rx={6} />
          <text x={column * columnWidth + boxWidth / 2 + 1} y={row * rowHeight + 22} text-anchor="middle">
            {name}
          </text>
        </g>
      ))}
    </svg>
  );
}
