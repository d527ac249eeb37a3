/** The meters of one `/metrics`. What can be read is read when somebody looks; the rest is counted in plain numbers. */
import { Counter, Gauge, Histogram, Registry } from "@prometheus-io/client";

type Labels = Readonly<Record<string, string>>;
type Values = Iterable<readonly [labels: Labels, value: number]>;

export class Meters {
  readonly registry = new Registry();
  private readonly registers = [this.registry];

  gauge(name: string, help: string, read: () => number): void {
    this.gauges(name, help, [], () => [[{}, read()]]);
  }

  gauges(name: string, help: string, labelNames: string[], read: () => Values | Promise<Values>): void {
    new Gauge({
      name,
      help,
      labelNames,
      registers: this.registers,
      async collect() {
        for (const [labels, value] of await read()) this.set(labels, value);
      },
    });
  }

  counters(name: string, help: string, labelNames: string[], read: () => Values): void {
    new Counter({
      name,
      help,
      labelNames,
      registers: this.registers,
      collect() {
        this.reset();
        for (const [labels, value] of read()) this.inc(labels, value);
      },
    });
  }

  /** Returns a function that counts one more of a value. */
  tally(name: string, help: string, label: string): (value: string) => void {
    const totals = new Map<string, number>();
    this.counters(name, help, [label], () => labelled(label, totals));
    return (value) => addOne(totals, value);
  }

  histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name, help, buckets, registers: this.registers });
  }
}

export function labelled(label: string, values: Iterable<readonly [string, number]>): Values {
  return Array.from(values, ([value, count]) => [{ [label]: value }, count] as const);
}

export function addOne(totals: Map<string, number>, value: string): void {
  totals.set(value, (totals.get(value) ?? 0) + 1);
}
