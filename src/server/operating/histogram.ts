/**
 * How often values fell between given bounds, as Prometheus shows it. The library's histogram finds labels by a joined text
 * and bounds by name, for each value; under lock cycles that was 4 % of the main thread (decision 0061).
 */
export type Labels = Readonly<Record<string, string>>;

/** The values with the same labels. */
export class Series {
  readonly labels: Labels;
  /** Of those up to each bound, and last of those beyond; not summed up. */
  readonly counts: Float64Array;
  sum = 0;
  private readonly bounds: readonly number[];

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels;
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++;
    counts[at] = (counts[at] ?? 0) + 1;
    this.sum += value;
  }
}

export class Histogram {
  private readonly name: string;
  private readonly help: string;
  private readonly bounds: readonly number[];
  private readonly all: Series[] = [];

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name;
    this.help = help;
    this.bounds = bounds;
  }

  /** For the caller to keep: with the same labels again it would be shown twice. Shown from now on. */
  addSeries(labels: Labels = {}): Series {
    const series = new Series(labels, this.bounds);
    this.all.push(series);
    return series;
  }

  /** In the text format of Prometheus, without an empty line at the end. */
  get text(): string {
    const { name, help, bounds } = this;
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
    for (const { labels, counts, sum } of this.all) {
      const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      const braces = pairs.length === 0 ? "" : `{${pairs.join()}}`;
      let count = 0;
      for (const [at, some] of counts.entries()) {
        count += some;
        lines.push(`${name}_bucket{${[`le="${bounds[at] ?? "+Inf"}"`, ...pairs].join()}} ${count}`);
      }
      lines.push(`${name}_sum${braces} ${sum}`, `${name}_count${braces} ${count}`);
    }
    return lines.join("\n");
  }
}
