/**
 * `exec`: the user's own commands bind and tear down. Each gets the lease in its environment and as JSON on standard
 * input; exit code 0 means done. The first line that `bind` prints is where to connect.
 */
import type { Binding } from "../binding.ts";
import { Driver, type Operations, type ProbeResult } from "../driver.ts";
import type { Fields } from "../fields.ts";
import { Launcher, type LaunchOptions, readCommand, readLaunchOptions } from "../launching.ts";
import { runForLease } from "../run-command.ts";

interface ExecOptions {
  readonly launch: LaunchOptions;
  readonly bind: readonly string[];
  readonly teardown: readonly string[];
  readonly probe: readonly string[] | null;
  readonly reset: readonly string[] | null;
}

export function readExecOptions(fields: Fields, folder: string): ExecOptions {
  const read = (name: string): readonly string[] | null => readCommand(fields, name, folder);
  const [bind, teardown, probe, reset] = [read("bind"), read("teardown"), read("probe"), read("reset")];
  const missing = bind === null ? "bind" : teardown === null ? "teardown" : null;
  if (missing !== null && fields.faults.length === 0) {
    fields.fault(missing, "is missing; give a program and its arguments");
  }
  return { launch: readLaunchOptions(fields, false), bind: bind ?? [], teardown: teardown ?? [], probe, reset };
}

const coordinateLengthMax = 1_024;

export class ExecDriver extends Driver<ExecOptions> {
  /** What `bind` sets up is used directly, and nobody here sees how. */
  static readonly operations: Operations = { bind: "opaque" };
  private readonly launcher = new Launcher(this.options.launch);

  override start(): Promise<void> {
    return this.launcher.prepare();
  }

  override canWeaken(): boolean {
    return false;
  }

  async bind(binding: Binding, signal: AbortSignal): Promise<string> {
    this.requireWriter(binding, "bind");
    const output = await this.run("bind", this.options.bind, binding, signal);
    const coordinate = output.split("\n")[0]?.trim() ?? "";
    if (coordinate.length > coordinateLengthMax) throw new Error("bind printed more than a place to connect to");
    return coordinate;
  }

  override async teardown(binding: Binding, signal: AbortSignal): Promise<void> {
    await this.run("teardown", this.options.teardown, binding, signal);
  }

  /** Without a probe it is not known to be clean, and a fence stays. */
  async probe(signal: AbortSignal): Promise<ProbeResult> {
    if (this.options.probe === null) return { clean: false, detail: "no probe is configured" };
    await this.run("probe", this.options.probe, null, signal);
    return { clean: true, detail: "the probe has seen it clean" };
  }

  async reset(signal: AbortSignal): Promise<void> {
    if (this.options.reset !== null) await this.run("reset", this.options.reset, null, signal);
  }

  private run(
    event: string,
    command: readonly string[],
    binding: Binding | null,
    signal: AbortSignal,
  ): Promise<string> {
    return runForLease({ launcher: this.launcher, command, facts: this.leaseJson(event, binding), signal });
  }
}
