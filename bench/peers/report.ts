/** Medians, ranges, ratios and bars of a run of bench:peers. */
import { format, median } from "../children.ts";

export interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}
/** By system, then by what was measured: a number of callers, or `added`, `worked`, `lone_ms`. */
export type Figures = Readonly<Record<string, Readonly<Record<string, Figure>>>>;

export interface Results {
  readonly at: string;
  readonly machine: { readonly cores: number; readonly node: string; readonly fsync_ms: number };
  readonly rounds: number;
  readonly locks: Figures;
  readonly tasks: Figures;
}

export class Samples {
  private readonly values = new Map<string, Map<string, number[]>>();

  add(system: string, measure: string, value: number): void {
    const measures = this.values.get(system) ?? new Map<string, number[]>();
    this.values.set(system, measures);
    measures.set(measure, [...(measures.get(measure) ?? []), value]);
  }

  summary(): Figures {
    return Object.fromEntries(
      [...this.values].map(([system, measures]) => [
        system,
        Object.fromEntries(
          [...measures].map(([measure, values]) => [
            measure,
            { median: median(values), min: Math.min(...values), max: Math.max(...values) },
          ]),
        ),
      ]),
    );
  }
}

export interface Verdict {
  readonly claim: string;
  readonly ratio: number;
  readonly bar: number;
  readonly isMet: boolean;
}

interface Bar {
  readonly ours: string;
  readonly peer: string;
  readonly measure: string;
  readonly bar: number;
  /** Times: ours may be at most `bar` of the peer's. */
  readonly isTime?: boolean;
}

const lockBars: readonly Bar[] = [
  ...["1", "16", "64"].map((measure) => ({ ours: "leasehold-stream", peer: "redis", measure, bar: 1 })),
  { ours: "leasehold-stream", peer: "redis", measure: "256", bar: 0.7 },
  ...["16", "64", "256"].flatMap((measure) => [
    { ours: "leasehold-stream", peer: "postgres", measure, bar: 2 },
    { ours: "leasehold-stream", peer: "etcd", measure, bar: 10 },
  ]),
  { ours: "leasehold-http", peer: "leasehold-stream", measure: "16", bar: 0.5 },
  { ours: "leasehold-postgres", peer: "leasehold-stream", measure: "64", bar: 0.5 },
  ...["16", "64", "256"].map((measure) => ({ ours: "leasehold-postgres", peer: "postgres", measure, bar: 1.5 })),
];
const taskBars: readonly Bar[] = [
  { ours: "leasehold", peer: "bullmq", measure: "worked", bar: 1 },
  { ours: "leasehold", peer: "graphile", measure: "added", bar: 1 },
  { ours: "leasehold", peer: "bullmq", measure: "lone_ms", bar: 1, isTime: true },
];

/** The bars whose two sides were both measured. */
export function judge({ locks, tasks }: Results): readonly Verdict[] {
  const verdicts = (figures: Figures, bars: readonly Bar[]): Verdict[] =>
    bars.flatMap(({ ours, peer, measure, bar, isTime = false }) => {
      const [own, other] = [figures[ours]?.[measure], figures[peer]?.[measure]];
      if (own === undefined || other === undefined) return [];
      const ratio = own.median / other.median;
      return [{ claim: `${ours} / ${peer}, ${measure}`, ratio, bar, isMet: isTime ? ratio <= bar : ratio >= bar }];
    });
  return [...verdicts(locks, lockBars), ...verdicts(tasks, taskBars)];
}

export function table(title: string, figures: Figures, measures: readonly string[]): string {
  const cell = (figure: Figure | undefined): string => {
    if (figure === undefined) return "–";
    const show = (value: number): string => (value < 100 ? value.toFixed(1) : format(value));
    return `${show(figure.median)} (${show(figure.min)}–${show(figure.max)})`;
  };
  const rows = Object.entries(figures).map(([system, row]) => [
    system,
    ...measures.map((measure) => cell(row[measure])),
  ]);
  const lines = [["", ...measures], ...rows];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  const text = lines.map((line) =>
    line
      .map((word, column) => word.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return [title, ...text, ""].join("\n");
}
