/** Both experiments as one SVG chart, written as text. */
import type { FleetResult } from "./fleet.ts";
import type { GrowingResult } from "./growing.ts";

interface Bar {
  readonly label: string;
  readonly value: number;
  readonly max: number;
  readonly text: string;
  readonly colour: string;
}

const width = 760;
const rowHeight = 30;
const labelWidth = 230;
const colours = { bad: "#c0392b", fair: "#d68910", good: "#1e8449", plain: "#5d6d7e" } as const;

export function chartSvg(
  fleet: readonly FleetResult[],
  growing: readonly GrowingResult[],
  published: readonly GrowingRow[],
): string {
  const lost: readonly Bar[] = fleet.map(({ way, lost: count, edits }) => ({
    label: way,
    value: count,
    max: edits,
    text: `${count} of ${edits}`,
    colour: count === 0 ? colours.good : colours.bad,
  }));
  const speed: readonly Bar[] = fleet.map(({ way, idealMs, ms, lost: count }) => ({
    label: way,
    value: Math.min(1, idealMs / ms),
    max: 1,
    text: `${(idealMs / ms).toFixed(2)}${count > 0 ? ", but it lost edits" : ""}`,
    colour: count > 0 ? colours.plain : colours.good,
  }));
  const rows = [...growing.map(rowOf), ...published];
  const success: readonly Bar[] = rows.map(({ label, success: share, retries }) => ({
    label,
    value: share,
    max: 1,
    text: `${(100 * share).toFixed(1)} %${retries === null ? "" : `, ${retries.toFixed(1)} retries a task`}`,
    colour: share === 1 ? colours.good : share > 0.5 ? colours.fair : colours.bad,
  }));
  const sections = [
    section("Edits lost by the fleet", lost),
    section("Speed of the fleet, as a share of the ideal schedule", speed),
    section("Tasks with growing scopes that succeed", success),
  ];
  let at = 20;
  const parts = sections.map(({ height, text }) => {
    const part = `<g transform="translate(0 ${at})">${text}</g>`;
    at += height;
    return part;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${at}" viewBox="0 0 ${width} ${at}" font-family="system-ui, sans-serif" font-size="13">`,
    "<title>A fleet of coding agents without guards and with them</title>",
    `<rect width="${width}" height="${at}" fill="#ffffff"/>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

export interface GrowingRow {
  readonly label: string;
  readonly success: number;
  readonly retries: number | null;
}

export function rowOf({ way, succeeded, tasks, retries }: GrowingResult): GrowingRow {
  return {
    label: `${way}, here`,
    success: succeeded / tasks,
    retries: way === "no coordination" ? null : retries / tasks,
  };
}

function section(title: string, bars: readonly Bar[]): { readonly height: number; readonly text: string } {
  const room = width - labelWidth - 230;
  const rows = bars.map(({ label, value, max, text, colour }, index) => {
    const y = 30 + index * rowHeight;
    const length = max === 0 ? 0 : Math.max(2, Math.round((value / max) * room));
    return [
      `<text x="${labelWidth - 8}" y="${y + 15}" text-anchor="end" fill="#1c2833">${escaped(label)}</text>`,
      `<rect x="${labelWidth}" y="${y}" width="${length}" height="20" rx="3" fill="${colour}"/>`,
      `<text x="${labelWidth + length + 8}" y="${y + 15}" fill="#1c2833">${escaped(text)}</text>`,
    ].join("");
  });
  const head = `<text x="20" y="14" font-size="15" font-weight="600" fill="#1c2833">${escaped(title)}</text>`;
  return { height: 30 + bars.length * rowHeight + 20, text: `${head}${rows.join("")}` };
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
