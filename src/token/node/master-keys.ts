/**
 * `token-keys.json` in the data folder: the master keys, made at the first start, for their owner alone, and never
 * logged. Keys of cells are derived from them. Rotation makes a new one and leaves the older ones long enough for every
 * token that was made with them to end by itself.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { SigningKey, SigningKeys } from "../mint.ts";
import type { HmacKey } from "../sha256.ts";
import { tokenLimits } from "../token.ts";
import { type CellKey, CellKeys, deriveKey, keyBytes } from "./cell-keys.ts";

export const masterKeyFileName = "token-keys.json";
/** The longest life of a token, and a minute for clocks that differ. */
export const overlapMsDefault = tokenLimits.lifeMsMax + 60_000;
const cellsRememberedMax = 10_000;
const othersMay = 0o077;

interface MasterKey {
  readonly id: string;
  readonly key: Uint8Array;
  readonly createdAt: number;
  readonly retiresAt: number | null;
}

export class MasterKeysUnusable extends Error {
  constructor(file: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`the token keys in ${file} cannot be used (${why}); put them back, or move the file away to begin anew`);
    this.name = "MasterKeysUnusable";
    this.cause = cause;
  }
}

export class MasterKeys implements SigningKeys {
  readonly file: string;
  #keys: readonly MasterKey[];
  readonly #cells = new Map<string, CellKeys>();

  private constructor(file: string, keys: readonly MasterKey[]) {
    this.file = file;
    this.#keys = keys;
  }

  /** Of a data folder that is ours. A file that cannot be read is never replaced. */
  static open(folder: string, now: number): MasterKeys {
    const file = join(folder, masterKeyFileName);
    try {
      return new MasterKeys(file, readOrMake(file, now));
    } catch (cause) {
      throw new MasterKeysUnusable(file, cause);
    }
  }

  /** A new key from now on; tokens of the older ones stay good until the overlap is over. Returns the new key's id. */
  rotate(now: number, overlapMs = overlapMsDefault): string {
    this.reload();
    const kept = this.#keys
      .filter(({ retiresAt }) => retiresAt === null || retiresAt > now)
      .map((key) => ({ ...key, retiresAt: key.retiresAt ?? now + overlapMs }));
    const made = newKey(now);
    replace(this.file, [...kept, made]);
    this.reload();
    return made.id;
  }

  /** After another process has rotated. */
  reload(): void {
    try {
      this.#keys = read(this.file);
    } catch (cause) {
      throw new MasterKeysUnusable(this.file, cause);
    }
    for (const [cell, keys] of this.#cells) keys.install(this.cellKeys(cell));
  }

  /** What a cell is given when it enrols, and after every rotation. */
  cellKeys(cell: string): readonly CellKey[] {
    return this.#keys.map(({ id, key, retiresAt }) => ({ id, key: deriveKey(key, "cell", cell), retiresAt }));
  }

  current(tenant: string, cell: string): SigningKey {
    return this.#of(cell).current(tenant, cell);
  }

  find(keyId: string, tenant: string, cell: string, now: number): HmacKey | null {
    return this.#of(cell).find(keyId, tenant, cell, now);
  }

  #of(cell: string): CellKeys {
    const known = this.#cells.get(cell);
    if (known !== undefined) return known;
    if (this.#cells.size >= cellsRememberedMax) this.#cells.clear();
    const keys = new CellKeys(cell, this.cellKeys(cell));
    this.#cells.set(cell, keys);
    return keys;
  }
}

/** Two servers that start at once on one folder agree: the second finds the first one's file. */
function readOrMake(file: string, now: number): readonly MasterKey[] {
  try {
    return read(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
  }
  const partial = `${file}.${process.pid}.new`;
  writeSynced(partial, [newKey(now)]);
  try {
    linkSync(partial, file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
  } finally {
    rmSync(partial, { force: true });
  }
  syncFolder(dirname(file));
  return read(file);
}

function replace(file: string, keys: readonly MasterKey[]): void {
  const partial = `${file}.${process.pid}.new`;
  writeSynced(partial, keys);
  renameSync(partial, file);
  syncFolder(dirname(file));
}

function newKey(now: number): MasterKey {
  const key = new Uint8Array(randomBytes(keyBytes));
  return { id: idOf(key), key, createdAt: now, retiresAt: null };
}

/** From the key itself, so that an id cannot stand for another key. */
function idOf(key: Uint8Array): string {
  return Buffer.from(deriveKey(key, "id", ""))
    .toString("hex")
    .slice(0, 12);
}

interface StoredKeys {
  readonly version: 1;
  readonly keys: readonly {
    readonly id: string;
    readonly key: string;
    readonly created_at: number;
    readonly retires_at: number | null;
  }[];
}

function read(file: string): readonly MasterKey[] {
  const handle = openSync(file, "r");
  let text: string;
  try {
    if ((fstatSync(handle).mode & othersMay) !== 0) throw new Error("others may read it; set its mode to 0600");
    text = readFileSync(handle, "utf8");
  } finally {
    closeSync(handle);
  }
  const keys = decode(text);
  if (!keys.some(({ retiresAt }) => retiresAt === null)) throw new Error("it names no present key");
  return keys;
}

function decode(text: string): readonly MasterKey[] {
  let stored: Partial<StoredKeys>;
  try {
    stored = JSON.parse(text) as Partial<StoredKeys>;
  } catch {
    // The parser's own words would repeat part of the file, and with it of a key.
    throw new Error("it is not JSON");
  }
  if (stored.version !== 1 || !Array.isArray(stored.keys)) throw new Error("it has another form");
  return stored.keys.map((entry: Partial<StoredKeys["keys"][number]>) => {
    const key = new Uint8Array(Buffer.from(String(entry.key), "base64url"));
    const retiresAt = entry.retires_at ?? null;
    if (key.length !== keyBytes || entry.id !== idOf(key)) throw new Error("a key in it is damaged");
    if (retiresAt !== null && !Number.isSafeInteger(retiresAt)) throw new Error("a key's end in it is no time");
    return { id: entry.id, key, createdAt: Number(entry.created_at), retiresAt };
  });
}

function writeSynced(file: string, keys: readonly MasterKey[]): void {
  const stored: StoredKeys = {
    version: 1,
    keys: keys.map(({ id, key, createdAt, retiresAt }) => ({
      id,
      key: Buffer.from(key).toString("base64url"),
      created_at: createdAt,
      retires_at: retiresAt,
    })),
  };
  rmSync(file, { force: true });
  const handle = openSync(file, "wx", 0o600);
  try {
    writeSync(handle, `${JSON.stringify(stored, null, 2)}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
