/** The minutes of a soak as one SVG chart, written as text. */

export interface SoakMinute {
  readonly minute: number;
  /** All sizes in MB. */
  readonly rss: number;
  readonly heap: number;
  readonly database: number;
  /** The database without the ledger. */
  readonly bounded: number;
  readonly wal: number;
  /** Latency of acquire in ms, from when it was due. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const width = 760;
const panelHeight = 150;
const left = 70;
const colours = ["#1e8449", "#2471a3", "#c0392b"] as const;

const panels: readonly (readonly [title: string, lines: readonly (keyof Omit<SoakMinute, "minute">)[]])[] = [
  ["memory of the server, MB", ["rss", "heap"]],
  ["files, MB", ["database", "bounded", "wal"]],
  ["latency of acquire, ms", ["p50", "p99", "max"]],
];

export function drawSoak(rows: readonly SoakMinute[]): string {
  const height = panels.length * (panelHeight + 40) + 20;
  const parts = panels.map(([title, lines], index) => {
    const most = Math.max(1, ...rows.flatMap((row) => lines.map((line) => row[line])));
    const last = Math.max(rows.at(-1)?.minute ?? 1, 2);
    const x = (minute: number): string => (left + ((minute - 1) / (last - 1)) * (width - left - 20)).toFixed(1);
    const y = (value: number): string => (panelHeight - (value / most) * (panelHeight - 20)).toFixed(1);
    const drawn = lines.map((line, nth) => {
      const points = rows.map((row) => `${x(row.minute)},${y(row[line])}`).join(" ");
      const colour = colours[nth] ?? colours[0];
      const label = `<text x="${left + nth * 110}" y="${panelHeight + 18}" fill="${colour}">${line}</text>`;
      return `<polyline fill="none" stroke="${colour}" stroke-width="1.5" points="${points}"/>${label}`;
    });
    const frame = `<path d="M${left} 10V${panelHeight}H${width - 20}" fill="none" stroke="#999999"/>`;
    const scale = `<text x="${left - 6}" y="24" text-anchor="end">${most.toFixed(0)}</text>`;
    const text = `<text x="${left + 6}" y="18" font-weight="bold">${title}</text>`;
    return `<g transform="translate(0 ${20 + index * (panelHeight + 40)})">${frame}${scale}${text}${drawn.join("")}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>A service under an even load, ${rows.length} minutes</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}
