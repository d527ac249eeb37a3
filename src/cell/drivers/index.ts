/** The drivers by their names in a configuration, each with what reads its options. A closed list. */
import { isAbsolute, resolve } from "node:path";
import type { Driver, DriverPlace } from "../driver.ts";
import { ExecDriver, readExecOptions } from "./exec.ts";
import { FilesDriver, readFilesOptions } from "./files.ts";
import { HttpDriver, readHttpOptions } from "./http.ts";
import { ProcessDriver, readProcessOptions } from "./process.ts";
import { readTcpOptions, TcpDriver } from "./tcp.ts";
import { readWebhookOptions, WebhookDriver } from "./webhook.ts";

export type MakeDriver = (place: DriverPlace) => Driver;

interface ReadDriver {
  readonly make: MakeDriver;
  readonly faults: readonly string[];
}

type ReadOptions = (options: unknown, where: string, folder: string) => ReadDriver;

export const drivers = {
  http: (value, where) => {
    const { options, faults } = readHttpOptions(value, where);
    return { make: (place) => new HttpDriver(options, place), faults };
  },
  tcp: (value, where) => {
    const { options, faults } = readTcpOptions(value, where);
    return { make: (place) => new TcpDriver(options, place), faults };
  },
  process: (value, where, folder) => {
    const { options, faults } = readProcessOptions(value, where);
    const home = options.folder === null ? folder : resolve(folder, options.folder);
    return { make: (place) => new ProcessDriver({ ...options, folder: home }, place), faults };
  },
  files: (value, where, folder) => {
    const { options, faults } = readFilesOptions(value, where);
    const { area } = options;
    const placed =
      area.type === "folder"
        ? { ...area, folder: resolve(folder, area.folder) }
        : { ...area, file: resolve(folder, area.file) };
    return { make: (place) => new FilesDriver({ ...options, area: placed }, place), faults };
  },
  exec: (value, where, folder) => {
    const { options, faults } = readExecOptions(value, where);
    const { bind, teardown, probe, reset } = options;
    const at = (command: readonly string[]): readonly string[] => commandFrom(command, folder);
    const placed = { bind: at(bind), teardown: at(teardown), probe: probe && at(probe), reset: reset && at(reset) };
    return { make: (place) => new ExecDriver(placed, place), faults };
  },
  webhook: (value, where, folder) => {
    const { options, faults } = readWebhookOptions(value, where);
    const secretFile = resolve(folder, options.secretFile);
    return { make: (place) => new WebhookDriver({ ...options, secretFile }, place), faults };
  },
} as const satisfies Record<string, ReadOptions>;

export type DriverName = keyof typeof drivers;

export function isDriverName(text: string): text is DriverName {
  return Object.hasOwn(drivers, text);
}

/** A program that is named with a slash is taken from the configuration's folder; others are searched for in PATH. */
function commandFrom([program = "", ...args]: readonly string[], folder: string): readonly string[] {
  return [program.includes("/") && !isAbsolute(program) ? resolve(folder, program) : program, ...args];
}
