/** The drivers by their names in a configuration. A closed list. */
import type { Driver, DriverPlace } from "../driver.ts";
import { Fields } from "../fields.ts";
import { ExecDriver, readExecOptions } from "./exec.ts";
import { FilesDriver, readFilesOptions } from "./files.ts";
import { HttpDriver, readHttpOptions } from "./http.ts";
import { ProcessDriver, readProcessOptions } from "./process.ts";
import { readTcpOptions, TcpDriver } from "./tcp.ts";
import { readWebhookOptions, WebhookDriver } from "./webhook.ts";

export type MakeDriver = (place: DriverPlace) => Driver;

export const drivers = {
  http: driver(readHttpOptions, HttpDriver),
  tcp: driver(readTcpOptions, TcpDriver),
  process: driver(readProcessOptions, ProcessDriver),
  files: driver(readFilesOptions, FilesDriver),
  exec: driver(readExecOptions, ExecDriver),
  webhook: driver(readWebhookOptions, WebhookDriver),
} as const;

export type DriverName = keyof typeof drivers;

export function isDriverName(text: string): text is DriverName {
  return Object.hasOwn(drivers, text);
}

/** Reads the options of a driver, whose paths are relative to the configuration's folder. */
function driver<T>(
  read: (fields: Fields, folder: string) => T,
  Made: new (options: T, place: DriverPlace) => Driver<T>,
) {
  return (value: unknown, where: string, folder: string) => {
    const fields = new Fields(value, where);
    const options = read(fields, folder);
    const make: MakeDriver = (place) => new Made(options, place);
    return { make, faults: fields.finish() };
  };
}
