/**
 * The keys that are known, found by the hash of the secret that is shown. The engine has them by id; the index by hash
 * is made when it is first needed, and anew after a key was made or the engine has started over from what is stored.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Engine } from "../../engine/engine.ts";
import type { Key } from "../../kernel/contract/records.ts";
import type { KeyEntry } from "../../kernel/memory/state.ts";
import type { Caller } from "../service.ts";
import { createMeter } from "./rate-limit.ts";

/** A secret has 256 random bits, so that a plain hash cannot be undone by guessing; slow ones are for passwords. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

export function newSecret(): string {
  return `lhk_${randomBytes(32).toString("base64url")}`;
}

export function newKeyId(): string {
  return `key_${randomBytes(8).toString("hex")}`;
}

interface KnownKey {
  readonly key: Key;
  readonly hash: Buffer;
  readonly caller: Caller;
}

export class KeyRing {
  private readonly engine: Engine;
  private byHash = new Map<string, KnownKey>();
  /** What the index was made from. After a recovery the engine has another map. */
  private source: ReadonlyMap<string, KeyEntry> | null = null;
  /** Told of each change, so that connections which were opened with a deleted key can be ended. */
  onChange: (() => void) | null = null;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  get isEmpty(): boolean {
    return this.engine.peek(({ keys }) => keys.size === 0);
  }

  /**
   * Nothing is compared with a secret, only its hash is looked up: how long that takes tells nothing about any key.
   * What is found is held against the engine's own record, so that a deleted key is never found.
   */
  find(secret: string): Caller | null {
    const keys = this.engine.peek((state) => state.keys);
    if (keys !== this.source) this.index(keys);
    const shown = hashSecret(secret);
    const known = this.byHash.get(shown);
    if (known === undefined || !timingSafeEqual(known.hash, Buffer.from(shown))) return null;
    return keys.get(known.key.id)?.record === known.key ? known.caller : null;
  }

  /** To be called when a key was made or deleted: the next look makes the index anew. */
  noteChange(): void {
    this.source = null;
    this.onChange?.();
  }

  private index(keys: ReadonlyMap<string, KeyEntry>): void {
    const before = this.byHash;
    this.byHash = new Map();
    this.source = keys;
    for (const { record: key } of keys.values()) {
      const meter = before.get(key.hash)?.caller.meter ?? createMeter();
      const caller: Caller = {
        tenant: key.tenant,
        actor: { role: key.role, agentId: null, epoch: null, keyId: key.id },
        meter,
      };
      this.byHash.set(key.hash, { key, hash: Buffer.from(key.hash), caller });
    }
  }
}
