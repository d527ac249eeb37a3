/**
 * The meters of `/metrics`. What can be read is read when somebody looks; the rest is counted in plain numbers. A scrape
 * changes nothing. Meters of the kind "tenant" are counted for each tenant, and shown to its own readers; operators
 * see the sum of all tenants, and the meters of the server as well.
 */
import { Counter, Gauge, Registry } from "@prometheus-io/client";
import { Histogram, type Labels, type Series } from "./histogram.ts";

export type Kind = "tenant" | "server";
/** A tenant; null: all of them. */
export type Scope = string | null;
type Values = Iterable<readonly [labels: Labels, value: number]>;

interface Description {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
}

/** What is shown to the readers of a scope. */
interface View {
  readonly registry: Registry;
  readonly histograms: Histogram[];
}

/** Adds a meter, as it is for the scope. */
type Placing = (shown: View, scope: Scope) => void;

export class Meters {
  private readonly placings: Record<Kind, Placing[]> = { tenant: [], server: [] };
  private readonly shown = new Map<Scope, View>();

  /** In the text format of Prometheus. */
  async text(scope: Scope): Promise<string> {
    const { registry, histograms } = this.shownTo(scope);
    return [await registry.metrics(), ...histograms.map(({ text }) => `${text}\n`)].join("\n");
  }

  get contentType(): string {
    return this.shownTo(null).registry.contentType;
  }

  gauge(kind: Kind, name: string, help: string, read: (scope: Scope) => number): void {
    this.gauges(kind, { name, help, labelNames: [] }, (scope) => [[{}, read(scope)]]);
  }

  gauges(kind: Kind, described: Description, read: (scope: Scope) => Values | Promise<Values>): void {
    this.placings[kind].push(({ registry }, scope) => {
      new Gauge({
        ...described,
        registers: [registry],
        async collect() {
          for (const [labels, value] of await read(scope)) this.set(labels, value);
        },
      });
    });
  }

  counters(kind: Kind, described: Description, read: (scope: Scope) => Values): void {
    this.placings[kind].push(({ registry }, scope) => {
      new Counter({
        ...described,
        registers: [registry],
        collect() {
          // It is counted elsewhere, and only copied here.
          this.reset();
          for (const [labels, value] of read(scope)) this.inc(labels, value);
        },
      });
    });
  }

  /** Returns a function that counts one more of a tenant. */
  total(name: string, help: string): (tenant: string) => void {
    const totals = new Tally();
    this.counters("tenant", { name, help, labelNames: [] }, (scope) => [[{}, totals.of(scope).get("") ?? 0]]);
    return (tenant) => totals.add(tenant, "");
  }

  /** Returns a function that counts one more of a value, which must be from a closed list. */
  tally(name: string, help: string, label: string): (tenant: string, value: string) => void {
    const totals = this.totals(name, help, label);
    return (tenant, value) => totals.add(tenant, value);
  }

  /** The same for the caller to count in. */
  totals(name: string, help: string, label: string): Tally {
    const totals = new Tally();
    this.counters("tenant", { name, help, labelNames: [label] }, (scope) => labelled(label, totals.of(scope)));
    return totals;
  }

  /** Of the whole server. */
  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const histogram = new Histogram(name, help, bounds);
    this.placings.server.push(({ histograms }) => histograms.push(histogram));
    return histogram;
  }

  /** Returns a function that observes a value of a tenant. */
  histogramOfTenants(name: string, help: string, bounds: readonly number[]): (tenant: string, value: number) => void {
    const known = new Map<Scope, { readonly histogram: Histogram; readonly series: Series }>();
    const of = (scope: Scope) => {
      const before = known.get(scope);
      if (before !== undefined) return before;
      const histogram = new Histogram(name, help, bounds);
      const made = { histogram, series: histogram.addSeries() };
      known.set(scope, made);
      return made;
    };
    this.placings.tenant.push(({ histograms }, scope) => histograms.push(of(scope).histogram));
    return (tenant, value) => {
      of(tenant).series.observe(value);
      of(null).series.observe(value);
    };
  }

  private shownTo(scope: Scope): View {
    const known = this.shown.get(scope);
    if (known !== undefined) return known;
    const shown: View = { registry: new Registry(), histograms: [] };
    const { tenant, server } = this.placings;
    for (const place of scope === null ? [...tenant, ...server] : tenant) place(shown, scope);
    this.shown.set(scope, shown);
    return shown;
  }
}

/** How often each value occurred, for each tenant. */
export class Tally {
  private readonly byTenant = new Map<string, Map<string, number>>();

  add(tenant: string, value: string): void {
    addOne(this.ofTenant(tenant), value);
  }

  /** Where its values are counted. */
  ofTenant(tenant: string): Map<string, number> {
    const totals = this.byTenant.get(tenant) ?? new Map<string, number>();
    this.byTenant.set(tenant, totals);
    return totals;
  }

  of(scope: Scope): ReadonlyMap<string, number> {
    if (scope !== null) return this.byTenant.get(scope) ?? new Map();
    const sums = new Map<string, number>();
    for (const totals of this.byTenant.values()) {
      for (const [value, count] of totals) sums.set(value, (sums.get(value) ?? 0) + count);
    }
    return sums;
  }
}

export function labelled(label: string, values: Iterable<readonly [string, number]>): Values {
  return Array.from(values, ([value, count]) => [{ [label]: value }, count] as const);
}

export function addOne(totals: Map<string, number>, value: string): void {
  totals.set(value, (totals.get(value) ?? 0) + 1);
}
