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
  writeFileSync,
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

export interface MasterKeyInfo {
  readonly id: string;
  readonly createdAt: number;
  /** From then on nothing made with it is taken; null for the present one. */
  readonly retiresAt: number | null;
}

interface MasterKey extends MasterKeyInfo {
  readonly key: Uint8Array;
}

export class MasterKeysUnusable extends Error {
  constructor(file: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(
      `the token keys in ${file} cannot be used (${why}); put them back, or move the file away to start with new ones`,
    );
    this.name = "MasterKeysUnusable";
    this.cause = cause;
  }
}

export class MasterKeys implements SigningKeys {
  readonly file: string;
  #keys: readonly MasterKey[];
  /** Which data the keys belong to. */
  #mark: string | null;
  readonly #cells = new Map<string, CellKeys>();

  private constructor(file: string, { keys, mark }: KeyFile) {
    this.file = file;
    this.#keys = keys;
    this.#mark = mark;
  }

  /**
   * Of a data folder that is ours. A file that cannot be read is never replaced. The mark tells the data apart: beside
   * data with another one, which was restored from a backup, all older keys are void at once (S6).
   */
  static open(folder: string, now: number, mark: string | null = null): MasterKeys {
    const file = join(folder, masterKeyFileName);
    try {
      const found = readOrMake(file, now, mark);
      if (mark === null || found.mark === mark) return new MasterKeys(file, found);
      replace(file, { mark, keys: found.mark === null ? found.keys : [newKey(now)] });
      return new MasterKeys(file, read(file));
    } catch (cause) {
      throw new MasterKeysUnusable(file, cause);
    }
  }

  /** A new key from now on; tokens of the older ones stay good until the overlap is over, at most. Returns the new key's id. */
  rotate(now: number, overlapMs = overlapMsDefault): string {
    this.reload();
    const end = now + overlapMs;
    const kept = this.#keys
      .map((key) => ({ ...key, retiresAt: Math.min(key.retiresAt ?? end, end) }))
      .filter(({ retiresAt }) => retiresAt > now);
    const made = newKey(now);
    replace(this.file, { keys: [...kept, made], mark: this.#mark });
    this.reload();
    return made.id;
  }

  /** After another process has rotated. */
  reload(): void {
    try {
      const { keys, mark } = read(this.file);
      this.#keys = keys;
      this.#mark = mark;
    } catch (cause) {
      throw new MasterKeysUnusable(this.file, cause);
    }
    this.#cells.clear();
  }

  /**
   * What a cell is given when it enrols, and after every rotation. Two tenants may each have a cell of one name; these
   * are two cells, and the keys of one open nothing of the other's.
   */
  cellKeys(tenant: string, cell: string): readonly CellKey[] {
    const name = nameOf(tenant, cell);
    return this.#keys.map(({ id, key, retiresAt }) => ({ id, key: deriveKey(key, "cell", name), retiresAt }));
  }

  /** For those who look after them: everything but the keys. */
  list(): readonly MasterKeyInfo[] {
    return this.#keys.map(({ id, createdAt, retiresAt }) => ({ id, createdAt, retiresAt }));
  }

  current(tenant: string, cell: string): SigningKey {
    return this.#of(tenant, cell).current(tenant, cell);
  }

  find(keyId: string, tenant: string, cell: string, now: number): HmacKey | null {
    return this.#of(tenant, cell).find(keyId, tenant, cell, now);
  }

  #of(tenant: string, cell: string): CellKeys {
    const name = nameOf(tenant, cell);
    const known = this.#cells.get(name);
    if (known !== undefined) return known;
    if (this.#cells.size >= cellsRememberedMax) this.#cells.clear();
    const keys = new CellKeys(cell, this.cellKeys(tenant, cell));
    this.#cells.set(name, keys);
    return keys;
  }
}

/** A tenant's id has no slash in it, so that no two cells have one name. */
function nameOf(tenant: string, cell: string): string {
  return `${tenant}/${cell}`;
}

/** Two servers that start at once on one folder agree: the second finds the first one's file. */
function readOrMake(file: string, now: number, mark: string | null): KeyFile {
  try {
    return read(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
  }
  const partial = `${file}.${process.pid}.new`;
  writeSynced(partial, { keys: [newKey(now)], mark });
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

function replace(file: string, keys: KeyFile): void {
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

interface KeyFile {
  readonly keys: readonly MasterKey[];
  readonly mark: string | null;
}

interface StoredKeys {
  readonly version: 1;
  readonly data?: string;
  readonly keys: readonly {
    readonly id: string;
    readonly key: string;
    readonly created_at: number;
    readonly retires_at: number | null;
  }[];
}

function read(file: string): KeyFile {
  const handle = openSync(file, "r");
  try {
    if ((fstatSync(handle).mode & othersMay) !== 0) throw new Error("others may read it; set its mode to 0600");
    return decode(readFileSync(handle, "utf8"));
  } finally {
    closeSync(handle);
  }
}

function decode(text: string): KeyFile {
  let stored: Partial<StoredKeys>;
  try {
    stored = JSON.parse(text) as Partial<StoredKeys>;
  } catch {
    // The parser's own words would repeat part of the file, and with it of a key.
    throw new Error("it is not JSON");
  }
  if (stored.version !== 1 || !Array.isArray(stored.keys)) throw new Error("it has another form");
  const keys = stored.keys.map((entry: Partial<StoredKeys["keys"][number]>) => {
    const key = new Uint8Array(Buffer.from(String(entry.key), "base64url"));
    const retiresAt = entry.retires_at ?? null;
    if (key.length !== keyBytes || entry.id !== idOf(key)) throw new Error("a key in it is damaged");
    if (retiresAt !== null && !Number.isSafeInteger(retiresAt)) throw new Error("a key's end in it is not a time");
    return { id: entry.id, key, createdAt: Number(entry.created_at), retiresAt };
  });
  if (!keys.some(({ retiresAt }) => retiresAt === null)) throw new Error("it names no present key");
  return { keys, mark: typeof stored.data === "string" ? stored.data : null };
}

function writeSynced(file: string, { keys, mark }: KeyFile): void {
  const stored: StoredKeys = {
    version: 1,
    ...(mark !== null && { data: mark }),
    keys: keys.map(({ id, key, createdAt, retiresAt }) => ({
      id,
      key: Buffer.from(key).toString("base64url"),
      created_at: createdAt,
      retires_at: retiresAt,
    })),
  };
  rmSync(file, { force: true });
  writeFileSync(file, `${JSON.stringify(stored, null, 2)}\n`, { flag: "wx", mode: 0o600, flush: true });
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
