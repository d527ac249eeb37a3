/** Reads what a configuration file holds: every fault is a line that names the place and what to write instead. */

export class Fields {
  readonly faults: string[] = [];
  private readonly where: string;
  private readonly given: Readonly<Record<string, unknown>>;
  private readonly isBroken: boolean = false;
  private readonly known = new Set<string>();

  constructor(value: unknown, where: string) {
    this.where = where;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    this.given = isObject ? (value as Record<string, unknown>) : {};
    if (!isObject) this.fault("", "is not an object; write { … }");
    this.isBroken = !isObject;
  }

  text(name: string): string;
  text<T extends string | null>(name: string, fallback: T): string | T;
  text(name: string, fallback?: string | null): string | null {
    const value = this.raw(name);
    if (value === undefined && fallback !== undefined) return fallback;
    if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
    this.fault(name, value === undefined ? "is missing; give a text" : `is ${shown(value)}; give a text`);
    return "";
  }

  matching(name: string, pattern: RegExp, hint: string): string;
  matching<T extends string | null>(name: string, pattern: RegExp, hint: string, fallback: T): string | T;
  matching(name: string, pattern: RegExp, hint: string, fallback?: string | null): string | null {
    const before = this.faults.length;
    const value = fallback === undefined ? this.text(name) : this.text(name, fallback);
    if (this.faults.length === before && value !== null && value !== fallback && !pattern.test(value)) {
      this.fault(name, `is ${shown(value)}; ${hint}`);
    }
    return value;
  }

  /** An address, read as a URL after `scheme`; a stand-in where there is a fault. */
  address(name: string, pattern: RegExp, hint: string, scheme = ""): URL {
    const before = this.faults.length;
    const text = this.matching(name, pattern, hint);
    const url = URL.parse(`${scheme}${text}`);
    if (url === null && this.faults.length === before) this.fault(name, `is not an address; ${hint}`);
    return url ?? new URL("http://invalid.invalid");
  }

  integer<T extends number | null>(name: string, [min, max]: readonly [number, number], fallback: T): number | T {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
    this.fault(name, `is ${shown(value)}; give a whole number from ${min} to ${max}`);
    return fallback;
  }

  flag(name: string): boolean {
    const value = this.raw(name);
    if (value === undefined || typeof value === "boolean") return value ?? false;
    this.fault(name, `is ${shown(value)}; give true or false`);
    return false;
  }

  /** A list of texts; null where it is left out. */
  list(name: string): readonly string[] | null {
    const value = this.raw(name);
    if (value === undefined) return null;
    if (Array.isArray(value) && value.every((one) => typeof one === "string" && !one.includes("\0"))) return value;
    this.fault(name, `is ${shown(value)}; give a list of texts`);
    return null;
  }

  /** A program and its arguments. No shell is between, so that nothing in them is taken for a command. */
  command(name: string): readonly string[] | null {
    const value = this.list(name);
    if (value === null || (value.length > 0 && value[0] !== "")) return value;
    this.fault(name, "is empty; give a program and its arguments");
    return null;
  }

  fault(name: string, what: string): void {
    // For what is not an object at all, one line is enough.
    if (this.isBroken) return;
    this.faults.push(`${[this.where, name].filter(Boolean).join(".")} ${what}`);
  }

  /** A field that no driver reads is probably misspelt, and would otherwise be ignored silently. */
  finish(): readonly string[] {
    for (const name of Object.keys(this.given)) {
      if (!this.known.has(name)) this.fault(name.slice(0, 60), `is not known; there is ${[...this.known].join(", ")}`);
    }
    return this.faults;
  }

  raw(name: string): unknown {
    this.known.add(name);
    return this.given[name];
  }
}

function shown(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 80) ?? String(value);
}
