/**
 * A cell's configuration file. Every fault is one clear line; a resource that is wrong is left out, and the others go
 * on. Only a file that is not a cell's configuration at all stops it.
 */
import { dirname, resolve } from "node:path";
import { cellLinkLimits } from "../protocol/resources/cell-link.ts";
import { limits } from "../protocol/schema/limits.ts";
import { TrustProblem } from "../trust/loopback.ts";
import { loadTls, type TlsFiles } from "../trust/server-tls.ts";
import { type DriverName, drivers, isDriverName, type MakeDriver } from "./drivers/index.ts";
import { Fields } from "./fields.ts";

export interface ResourceConfig {
  readonly resource: string;
  readonly driver: DriverName;
  /** Units, for a counted resource (C6); null where the control plane alone decides who may be there together. */
  readonly capacity: number | null;
  /** Labels that a token can be narrowed to (G4). */
  readonly hardware: readonly string[];
  /** Operations that a lease which only reads may do (G4). */
  readonly reads: ReadonlySet<string>;
  readonly make: MakeDriver;
}

export interface CellConfig {
  readonly cell: string;
  readonly resources: readonly ResourceConfig[];
  /** The faults of the others, by name where they have one. */
  readonly faults: readonly string[];
  readonly stateFile: string | null;
  /** The certificate that its gateways show; null: they speak plainly. */
  readonly tls: TlsFiles | null;
  /** A driver that takes longer has failed (G7). */
  readonly bindMs: number;
  readonly teardownMs: number;
}

export class ConfigUnusable extends Error {
  override name = "ConfigUnusable";
}

const cellPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
/** As the control plane spells names (C3); a pattern is not a thing that can be hosted. */
const resourcePattern = /^[A-Z][A-Z0-9_]{0,63}:\/(?:[^\p{Cc}/*?\\]+(?:\/[^\p{Cc}/*?\\]+)*)?$/u;
const resourceLengthMax = 1_024;
const driverMs = [1, 600_000] as const;

/** Paths in it are taken from the file's own folder. */
export function readCellConfig(text: string, file: string): CellConfig {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ConfigUnusable(`${file} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  const fields = new Fields(value, "");
  const cell = fields.matching("cell", cellPattern, "give a name of letters, digits and . _ -");
  const shared = fields.list("hardware") ?? [];
  const stateFile = fields.text("state_file", null);
  const bindMs = fields.integer("bind_ms", driverMs, 9_000);
  const teardownMs = fields.integer("teardown_ms", driverMs, 9_000);
  const tls = readTls(fields, dirname(file));
  const given = fields.raw("resources");
  if (!Array.isArray(given)) fields.fault("resources", "is missing; give a list of resources");
  else if (given.length > cellLinkLimits.inventoryMax) {
    fields.fault("resources", `has ${given.length} entries; a cell hosts up to ${cellLinkLimits.inventoryMax}`);
  }
  const faults = fields.finish();
  if (faults.length > 0) throw new ConfigUnusable(`${file}: ${faults.join("; ")}`);
  const folder = dirname(file);
  const names = new Set<string>();
  const resources: ResourceConfig[] = [];
  const resourceFaults: string[] = [];
  for (const [at, value] of (Array.isArray(given) ? given : []).entries()) {
    const { config, faults: found } = readResource(value, `resources[${at}]`, shared, folder);
    if (config === null || found.length > 0) resourceFaults.push(...found);
    else if (names.has(config.resource)) resourceFaults.push(`${config.resource} stands there twice; the first counts`);
    else {
      names.add(config.resource);
      resources.push(config);
    }
  }
  return {
    cell,
    resources,
    faults: resourceFaults,
    tls,
    stateFile: stateFile === null ? null : resolve(folder, stateFile),
    bindMs,
    teardownMs,
  };
}

/** Files that cannot be used are found here, so that `--check` finds them too. */
function readTls(fields: Fields, folder: string): TlsFiles | null {
  const value = fields.raw("tls");
  if (value === undefined) return null;
  const own = new Fields(value, "tls");
  const [cert, key] = [own.text("cert"), own.text("key")];
  const files = { cert: resolve(folder, cert), key: resolve(folder, key), ca: null };
  for (const fault of own.finish()) fields.faults.push(fault);
  if (own.faults.length > 0) return null;
  try {
    loadTls(files, Date.now());
  } catch (error) {
    if (!(error instanceof TrustProblem)) throw error;
    fields.fault("tls", `cannot be used: ${error.message}`);
  }
  return files;
}

function readResource(
  value: unknown,
  where: string,
  shared: readonly string[],
  folder: string,
): { config: ResourceConfig | null; faults: readonly string[] } {
  const fields = new Fields(value, where);
  const resource = fields.matching("resource", resourcePattern, "give TYPE:/path, without patterns");
  if (resource.length > resourceLengthMax || resource !== resource.normalize("NFC") || hasDots(resource)) {
    fields.fault("resource", "is not in the one form that the control plane uses; give TYPE:/path");
  }
  const driver = fields.text("driver");
  const capacity = fields.integer("capacity", [1, 1_000_000_000], null);
  const hardware = [...new Set([...shared, ...(fields.list("hardware") ?? [])])];
  if (hardware.length > cellLinkLimits.hardwareMax || hardware.some((label) => !isLabel(label))) {
    const hint = `give up to ${cellLinkLimits.hardwareMax} short ones`;
    fields.fault("hardware", `has a label too many, too long or empty; ${hint}`);
  }
  const options = fields.raw("options") ?? {};
  if (!isDriverName(driver)) {
    if (driver !== "")
      fields.fault("driver", `is ${JSON.stringify(driver)}; there is ${Object.keys(drivers).join(", ")}`);
    return { config: null, faults: fields.finish() };
  }
  const { make, reads, faults } = drivers[driver](options, `${where}.options`, folder);
  return { config: { resource, driver, capacity, hardware, reads, make }, faults: [...fields.finish(), ...faults] };
}

function isLabel(text: string): boolean {
  return text !== "" && text.length <= limits.labelLengthMax;
}

function hasDots(resource: string): boolean {
  return resource.split("/").some((segment) => segment === "." || segment === "..");
}
