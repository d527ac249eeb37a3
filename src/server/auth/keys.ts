/**
 * Keys, found by the hash of the secret that a caller shows. The kernel has them by id; the index by hash is built when it
 * is first needed, and again after a key was created or deleted, or the engine has recovered.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Engine } from "../../engine/engine.ts";
import type { Decision } from "../../engine/engine-types.ts";
import type { CreateKey, DeleteKey } from "../../kernel/contract/commands.ts";
import type { Key } from "../../kernel/contract/records.ts";
import type { KeyEntry } from "../../kernel/views.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";
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

/** The secret is in this answer and nowhere else. */
export function runCreateKey({ service, operation, command, respond }: RunRequest<CreateKey>): null {
  const keySecret = newSecret();
  const key = { ...command.key, id: newKeyId(), hash: hashSecret(keySecret) };
  service.engine.submit({ ...command, key }, new KeyRun(service, operation, command, respond, { keySecret }));
  return null;
}

export function runDeleteKey({ service, operation, command, respond }: RunRequest<DeleteKey>): null {
  service.engine.submit(command, new KeyRun(service, operation, command, respond, {}));
  return null;
}

class KeyRun extends CommandRun {
  private readonly shown: { readonly keySecret?: string };

  constructor(...[service, operation, command, respond, shown]: [...ConstructorParameters<typeof CommandRun>, object]) {
    super(service, operation, command, respond);
    this.shown = shown;
  }

  override send({ reply, now }: Decision): void {
    this.service.counts.note(reply);
    this.service.keys.noteChange();
    this.answer(reply, now, this.shown);
  }
}

export class Keys {
  private readonly engine: Engine;
  private byHash = new Map<string, KnownKey>();
  /** What the index was built from. After a recovery the engine has another map. */
  private source: ReadonlyMap<string, KeyEntry> | null = null;
  /** Called after each change, so that connections which were opened with a deleted key can be ended. */
  onChange: (() => void) | null = null;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  get isEmpty(): boolean {
    return this.engine.peek(({ keys }) => keys.size === 0);
  }

  /**
   * Only the secret's hash is looked up, so timing reveals nothing about any key. What is found is compared with the
   * kernel's own record, so that a deleted key is never found.
   */
  find(secret: string): Caller | null {
    const keys = this.engine.peek((state) => state.keys);
    if (keys !== this.source) this.index(keys);
    const shown = hashSecret(secret);
    const known = this.byHash.get(shown);
    if (known === undefined || !timingSafeEqual(known.hash, Buffer.from(shown))) return null;
    return keys.get(known.key.id)?.record === known.key ? known.caller : null;
  }

  /** Called when a key was created or deleted: the next `find` builds the index again. */
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
