/**
 * The service's secrets in a database that others can read: encrypted under the operator's master key (AES-256-GCM, each with
 * its name bound to it). The keys that the rest of the server reads from files are put into a folder of this process, for
 * its user alone, and stored again when they have changed.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { closeSync, existsSync, fstatSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SecretBox } from "../../engine/engine-types.ts";
import { keyFileName } from "../../ledger/key-file.ts";
import type { Database } from "../../store/postgres-connection.ts";
import { masterKeyFileName } from "../../token/node/master-keys.ts";
import { ConfigProblem } from "../config/config.ts";

const othersMay = 0o077;
const keyBytesMin = 32;
const [nonceBytes, tagBytes] = [12, 16];
const files = [masterKeyFileName, keyFileName] as const;

/** The operator's key: at least 32 bytes in a file that nobody else can read. */
export class MasterKey {
  readonly #key: Buffer;

  constructor(file: string | null) {
    if (file === null) throw new ConfigProblem(`--store postgres://… needs --master-key-file; make one with ${recipe}`);
    let bytes: Buffer;
    try {
      bytes = readPrivate(file);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ConfigProblem(`the master key ${file} cannot be used: ${why}`);
    }
    if (bytes.length < keyBytesMin)
      throw new ConfigProblem(`the master key ${file} has ${bytes.length} bytes; make one with ${recipe}`);
    this.#key = Buffer.from(hkdfSync("sha256", bytes, "", "leasehold master key", 32));
  }

  seal(name: string, text: string): Buffer {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce).setAAD(Buffer.from(name));
    return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
  }

  open(name: string, sealed: Buffer): string {
    const body = sealed.subarray(nonceBytes, sealed.length - tagBytes);
    const decipher = createDecipheriv("aes-256-gcm", this.#key, sealed.subarray(0, nonceBytes)).setAAD(
      Buffer.from(name),
    );
    decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
    try {
      return decipher.update(body, undefined, "utf8") + decipher.final("utf8");
    } catch {
      throw new ConfigProblem(
        "the master key does not open the secrets in this database; give the one that it was set up with (--master-key-file)",
      );
    }
  }

  /** A key of its own for one purpose, the same on every server. */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#key, "", `leasehold ${purpose}`, 32));
  }

  /** For what is stored as text among other data. */
  box(name: string): SecretBox {
    return {
      seal: (text) => this.seal(name, text).toString("base64url"),
      open: (sealed) => this.open(name, Buffer.from(sealed, "base64url")),
    };
  }
}

/** The file that is judged is the one that is read: between the two its name may come to mean another. */
function readPrivate(file: string): Buffer {
  const handle = openSync(file, "r");
  try {
    if ((fstatSync(handle).mode & othersMay) !== 0) throw new Error("others may read it; set its mode to 0600");
    return readFileSync(handle);
  } finally {
    closeSync(handle);
  }
}

const recipe = "`(umask 077; head -c 32 /dev/urandom | base64 > master.key)`";

/** What a data folder has as files, as the database stores it. */
export function movedSecrets(key: MasterKey, read: (name: string) => string | null) {
  const found = files.flatMap((name) => {
    const text = read(name);
    return text === null ? [] : [{ name: name as string, sealed: key.seal(name, text) }];
  });
  return [{ name: "check", sealed: key.seal("check", "leasehold") }, ...found];
}

export class SharedSecrets {
  readonly #db: Database;
  readonly #key: MasterKey;
  /** What the database has, as this process knows. */
  readonly #known = new Map<string, string>();
  /** The first shard has the names of a database with one. */
  readonly #suffix: string;

  constructor(db: Database, key: MasterKey, shard = 0) {
    this.#db = db;
    this.#key = key;
    this.#suffix = shard === 0 ? "" : `#${shard}`;
  }

  /** A server with another key than the others stops here, before it can lead. */
  async check(): Promise<void> {
    await this.#put("check", "leasehold", "DO NOTHING");
    await this.#get("check");
  }

  /** By a leader, before it serves: what is stored replaces what the folder has. */
  async unpack(folder: string): Promise<void> {
    for (const name of files) {
      const text = await this.#get(`${name}${this.#suffix}`);
      if (text === null) continue;
      writeFileSync(join(folder, name), text, { mode: 0o600 });
      this.#known.set(name, text);
    }
  }

  /** By a leader, when its files have changed: before anything that was made with them leaves. */
  readonly store = async (folder: string): Promise<void> => {
    for (const name of files) {
      const file = join(folder, name);
      const text = existsSync(file) ? readFileSync(file, "utf8") : null;
      if (text === null || text === this.#known.get(name)) continue;
      await this.#put(`${name}${this.#suffix}`, text, "DO UPDATE SET sealed = excluded.sealed");
      this.#known.set(name, text);
    }
  };

  async #get(name: string): Promise<string | null> {
    const [row] = await this.#db.read(
      `SELECT encode(sealed, 'base64') AS sealed FROM ${this.#db.schema}.secrets WHERE name = $1`,
      [name],
    );
    return row === undefined ? null : this.#key.open(name, Buffer.from(String(row["sealed"]), "base64"));
  }

  async #put(name: string, text: string, conflict: string): Promise<void> {
    const sealed = this.#key.seal(name, text).toString("base64");
    await this.#db.read(
      `INSERT INTO ${this.#db.schema}.secrets VALUES ($1, decode($2, 'base64')) ON CONFLICT (name) ${conflict}`,
      [name, sealed],
    );
  }
}
