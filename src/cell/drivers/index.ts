/** The drivers by their names in a configuration. A closed list. */
import type { Driver, DriverPlace, Effect, Operations } from "../driver.ts";
import { Fields } from "../fields.ts";
import { ExecDriver, readExecOptions } from "./exec.ts";
import { FilesDriver, readFilesOptions } from "./files.ts";
import { HttpDriver, readHttpOptions } from "./http.ts";
import { MemoryDriver, readMemoryOptions } from "./memory.ts";
import { ProcessDriver, readProcessOptions } from "./process.ts";
import { readTcpOptions, TcpDriver } from "./tcp.ts";
import { readUdpOptions, UdpDriver } from "./udp.ts";
import { readWebhookOptions, WebhookDriver } from "./webhook.ts";

export type MakeDriver = (place: DriverPlace) => Driver;

export const drivers = {
  http: driver(readHttpOptions, HttpDriver),
  tcp: driver(readTcpOptions, TcpDriver),
  udp: driver(readUdpOptions, UdpDriver),
  process: driver(readProcessOptions, ProcessDriver),
  files: driver(readFilesOptions, FilesDriver),
  memory: driver(readMemoryOptions, MemoryDriver),
  exec: driver(readExecOptions, ExecDriver),
  webhook: driver(readWebhookOptions, WebhookDriver),
} as const;

export type DriverName = keyof typeof drivers;

export function isDriverName(text: string): text is DriverName {
  return Object.hasOwn(drivers, text);
}

/** A driver's class: what it can do is known before there is one. */
interface DriverClass<T> {
  new (options: T, place: DriverPlace): Driver<T>;
  readonly operations: Operations;
}

/** Reads the options of a driver, whose paths are relative to the configuration's folder. */
function driver<T>(read: (fields: Fields, folder: string) => T, Made: DriverClass<T>) {
  return (value: unknown, where: string, folder: string) => {
    const fields = new Fields(value, where);
    const reads = readReads(fields, Made.operations);
    const options = read(fields, folder);
    const make: MakeDriver = (place) => new Made(options, place);
    return { make, reads, faults: fields.finish() };
  };
}

/** G4: what reads by itself, and what the configuration says of operations that the cell cannot see into. */
function readReads(fields: Fields, operations: Operations): ReadonlySet<string> {
  const named = (effect: Effect): string[] => Object.keys(operations).filter((name) => operations[name] === effect);
  const given = fields.list("reads") ?? [];
  const wrong = given.find((name) => operations[name] !== "opaque");
  if (wrong !== undefined) {
    const hint = named("opaque").join(", ") || "nothing; leave it out";
    fields.fault("reads", `has ${JSON.stringify(wrong)}; there is ${hint}`);
  }
  return new Set([...named("reads"), ...given]);
}
