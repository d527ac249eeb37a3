/**
 * `exec`: the user's own commands bind and tear down. Each gets the lease in its environment and as JSON on standard
 * input; exit code 0 means done. The first line that `bind` prints is where to connect.
 */
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import type { Binding } from "../binding.ts";
import type { Driver, DriverPlace, ProbeResult } from "../driver.ts";
import { reasonOf } from "../failure.ts";
import type { Fields } from "../fields.ts";
import { runCommand } from "../run-command.ts";
import { leaseJson } from "./lease-json.ts";

export interface ExecOptions {
  readonly bind: readonly string[];
  readonly teardown: readonly string[];
  readonly probe: readonly string[] | null;
  readonly reset: readonly string[] | null;
}

export function readExecOptions(fields: Fields, folder: string): ExecOptions {
  const read = (name: string) => commandFrom(fields.command(name), folder);
  const [bind, teardown, probe, reset] = [read("bind"), read("teardown"), read("probe"), read("reset")];
  const hint = "is missing; give a program and its arguments";
  if (bind === null && fields.faults.length === 0) fields.fault("bind", hint);
  if (teardown === null && fields.faults.length === 0) fields.fault("teardown", hint);
  return { bind: bind ?? [], teardown: teardown ?? [], probe, reset };
}

/** A program that is named with a slash is taken from the configuration's folder; others are searched for in PATH. */
function commandFrom(command: readonly string[] | null, folder: string): readonly string[] | null {
  const [program, ...args] = command ?? [];
  if (program === undefined) return null;
  return [program.includes("/") ? resolve(folder, program) : program, ...args];
}

const coordinateLengthMax = 1_024;

export class ExecDriver implements Driver {
  private readonly options: ExecOptions;
  private readonly place: DriverPlace;

  constructor(options: ExecOptions, place: DriverPlace) {
    this.options = options;
    this.place = place;
  }

  async start(): Promise<void> {}

  async bind(binding: Binding, signal: AbortSignal): Promise<string> {
    const output = await this.run("bind", this.options.bind, binding, signal);
    const coordinate = output.split("\n")[0]?.trim() ?? "";
    if (coordinate.length > coordinateLengthMax) throw new Error("bind printed more than a place to connect to");
    return coordinate;
  }

  async teardown(binding: Binding, signal: AbortSignal): Promise<void> {
    await this.run("teardown", this.options.teardown, binding, signal);
  }

  /** Without a probe it is not known to be clean, and a fence stays. */
  async probe(signal: AbortSignal): Promise<ProbeResult> {
    if (this.options.probe === null) return { clean: false, detail: "no probe is configured" };
    try {
      await this.run("probe", this.options.probe, null, signal);
      return { clean: true, detail: "the probe has seen it clean" };
    } catch (error) {
      return { clean: false, detail: reasonOf(error) };
    }
  }

  async reset(signal: AbortSignal): Promise<void> {
    if (this.options.reset !== null) await this.run("reset", this.options.reset, null, signal);
  }

  async stop(): Promise<void> {}

  private run(
    event: string,
    command: readonly string[],
    binding: Binding | null,
    signal: AbortSignal,
  ): Promise<string> {
    const { cell, resource } = this.place;
    const lease = leaseJson(event, cell, resource, binding);
    const environment: Record<string, string> = {};
    for (const [name, value] of Object.entries(lease)) environment[`LEASEHOLD_${name.toUpperCase()}`] = String(value);
    const mark = `${cell}|${resource}|${event}|${randomUUID()}`;
    return runCommand({ command, environment, input: `${JSON.stringify(lease)}\n`, mark, signal });
  }
}
