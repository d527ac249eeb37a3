/** The chart of a run of bench:peers: one group of bars for each number of callers, and one for each kind of task figure. */
import { format } from "../children.ts";
import type { Figures, Results } from "./report.ts";

const names: Readonly<Record<string, string>> = {
  redis: "Redis, AOF always (ioredis)",
  postgres: "PostgreSQL row lease (postgres.js)",
  etcd: "etcd (etcd3)",
  "leasehold-stream": "Leasehold SDK, stream",
  "leasehold-http": "Leasehold SDK, HTTP",
  "leasehold-postgres": "Leasehold on PostgreSQL, stream",
  bullmq: "BullMQ on Redis, AOF always",
  graphile: "graphile-worker, batching",
  dbos: "DBOS on PostgreSQL",
  leasehold: "Leasehold SDK worker",
};
const width = 860;
const labelWidth = 250;
const barMax = width - labelWidth - 130;
const rowHeight = 24;
const ink = "#1c2833";
const colours = { ours: "#1e8449", peer: "#5d6d7e" };

export function drawChart({ locks, tasks, machine, rounds }: Results): string {
  const groups = [
    ...["1", "16", "64", "256"].map((count) => ({
      title: `Lock cycles a second, ${count} caller${count === "1" ? "" : "s"}`,
      rows: rowsOf(locks, count),
    })),
    { title: "Tasks a second, added by the thousand", rows: rowsOf(tasks, "added") },
    { title: "Tasks a second, one worker with 64 places", rows: rowsOf(tasks, "worked") },
    {
      title: "A lone task, from creation to completion: median in ms (shorter is better)",
      rows: rowsOf(tasks, "lone_ms"),
    },
  ].filter(({ rows }) => rows.length > 0);
  let y = 20;
  const parts = groups.map(({ title, rows }) => {
    const part = group(title, rows, y);
    y += 34 + rows.length * rowHeight;
    return part;
  });
  const footer = `Medians of ${rounds} rounds in turns on ${machine.cores} cores, Node ${machine.node}; every acknowledgement durable.`;
  parts.push(`<text x="20" y="${y + 6}" fill="${ink}" font-size="12">${footer}</text>`);
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y + 24}" viewBox="0 0 ${width} ${y + 24}" font-family="system-ui, sans-serif" font-size="13">`;
  const title = "<title>Leasehold beside its peers</title>";
  return `${[head, title, `<rect width="${width}" height="${y + 24}" fill="#ffffff"/>`, ...parts, "</svg>"].join("\n")}\n`;
}

interface Row {
  readonly system: string;
  readonly value: number;
}

function rowsOf(figures: Figures, measure: string): readonly Row[] {
  return Object.entries(figures).flatMap(([system, row]) => {
    const value = row[measure]?.median;
    return value === undefined || names[system] === undefined ? [] : [{ system, value }];
  });
}

function group(title: string, rows: readonly Row[], y: number): string {
  const largest = Math.max(...rows.map(({ value }) => value));
  const bars = rows.map(({ system, value }, index) => {
    const top = 24 + index * rowHeight;
    const length = Math.max(2, (value / largest) * barMax);
    const colour = system.startsWith("leasehold") ? colours.ours : colours.peer;
    const label = `<text x="${labelWidth - 8}" y="${top + 14}" text-anchor="end" fill="${ink}">${names[system]}</text>`;
    const shown = value < 100 ? value.toFixed(1) : format(value);
    const bar = `<rect x="${labelWidth}" y="${top}" width="${length.toFixed(1)}" height="18" rx="3" fill="${colour}"/>`;
    return `${label}${bar}<text x="${(labelWidth + length + 8).toFixed(1)}" y="${top + 14}" fill="${ink}">${shown}</text>`;
  });
  return `<g transform="translate(0 ${y})"><text x="20" y="14" font-size="15" font-weight="600" fill="${ink}">${title}</text>${bars.join("")}</g>`;
}
