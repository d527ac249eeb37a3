/** Keys and agents' tokens: which of them are valid now, until when, and for whom. */
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Engine } from "../../engine/engine.ts";
import type { KeyUse } from "../../kernel/contract/commands.ts";
import { keyIdPrefix } from "../../kernel/contract/ids.ts";
import type { Key, Millis } from "../../kernel/contract/records.ts";
import { keysIn } from "../../kernel/views.ts";
import type { Caller } from "../service.ts";
import type { Meter, Meters } from "./rate-limit.ts";

/** A secret has 256 random bits, so that a plain hash cannot be undone by guessing; slow ones are for passwords. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

export function newKeyId(): string {
  return `${keyIdPrefix}${randomBytes(8).toString("hex")}`;
}

export function newSecret(): string {
  return `lhk_${randomBytes(32).toString("base64url")}`;
}

/** Which secret of a key: a rotation makes the next (`generation`). */
export interface KeySecret {
  readonly keyId: string;
  readonly generation: number;
}

/** In place of a key, where the server's owner has shown its own credential. */
export const ownerSecret: KeySecret = { keyId: "owner", generation: 0 };

/** When a key was last shown, by the process's own clock: written for every request, stored once a minute. */
interface Use {
  at: number;
  notedAt: number;
}

interface KnownSecret {
  readonly keyId: string;
  readonly hash: Buffer;
  readonly caller: Caller;
  readonly use: Use;
}

type KeyTable = ReturnType<typeof keysIn>;

/**
 * Keys, found by the hash of the secret that a caller shows. The kernel has them by id; the index by hash is built when it
 * is first needed, and again after a key was created, deleted or rotated, or the engine has recovered.
 */
export class Keys {
  private readonly engine: Engine;
  private readonly meters: Meters;
  private readonly hasOwner: boolean;
  private byHash = new Map<string, KnownSecret>();
  private readonly uses = new Map<string, Use>();
  /** What the index was built from. After a recovery the engine has another map. */
  private source: KeyTable | null = null;
  /** Counts the changes, so that what was derived before one is known to be old. */
  version = 0;
  /** Called after each change, so that connections which were opened with a deleted key can be ended. */
  onChange: (() => void) | null = null;

  constructor(engine: Engine, meters: Meters, hasOwner: boolean) {
    this.engine = engine;
    this.meters = meters;
    this.hasOwner = hasOwner;
    engine.onRecovery(() => this.noteChange());
  }

  get isEmpty(): boolean {
    return this.engine.peek(keysIn).size === 0;
  }

  /**
   * Only the secret's hash is looked up, so timing reveals nothing about any key. What is found is compared with the
   * kernel's own record, so that a deleted key or a replaced secret is never found.
   */
  find(secret: string): Caller | null {
    const keys = this.refresh();
    const shown = hashSecret(secret);
    const known = this.byHash.get(shown);
    if (known === undefined || !timingSafeEqual(known.hash, Buffer.from(shown))) return null;
    const key = keys.get(known.keyId)?.record;
    const now = this.engine.now();
    if (key === undefined || now >= known.caller.until) return null;
    if (key.hash !== shown && key.formerHash !== shown) return null;
    known.use.at = performance.now();
    return known.caller;
  }

  /** Until when an agent's token that was drawn with this secret is good; 0: it is not. Null: drawn without a key. */
  goodUntil(secret: KeySecret | null): Millis {
    const keys = this.refresh();
    // The keyless time ends with the first key, and so does what was drawn in it.
    if (secret === null) return keys.size === 0 ? Number.POSITIVE_INFINITY : 0;
    if (secret.keyId === ownerSecret.keyId) return this.hasOwner ? Number.POSITIVE_INFINITY : 0;
    const key = keys.get(secret.keyId)?.record;
    if (key === undefined) return 0;
    const { generation, formerUntil } = key;
    if (secret.generation === generation) return key.expiresAt ?? Number.POSITIVE_INFINITY;
    return secret.generation === generation - 1 ? (formerUntil ?? 0) : 0;
  }

  /** The caller that one of its secrets stands for. */
  ofSecret({ keyId, generation }: KeySecret): Caller | null {
    const key = this.refresh().get(keyId)?.record;
    if (key === undefined) return null;
    const known = this.byHash.get(generation === key.generation ? key.hash : (key.formerHash ?? ""));
    if (known === undefined) return null;
    known.use.at = performance.now();
    return known.caller;
  }

  /** What the key of a token is narrowed to: an agent that it registers again is too. */
  scopesOf(secret: KeySecret | null): Key["scopes"] {
    return secret === null ? null : (this.engine.peek(keysIn).get(secret.keyId)?.record.scopes ?? null);
  }

  useOf(keyId: string): Use {
    const known = this.uses.get(keyId);
    if (known !== undefined) return known;
    const use = { at: 0, notedAt: 0 };
    this.uses.set(keyId, use);
    return use;
  }

  /** Those that were used since they were last asked for. */
  takeUses(): readonly KeyUse[] {
    const taken: KeyUse[] = [];
    const offset = this.engine.now() - performance.now();
    for (const [keyId, use] of this.uses) {
      if (use.at > use.notedAt) taken.push({ keyId, at: Math.floor(use.at + offset) });
      use.notedAt = use.at;
    }
    return taken;
  }

  /** Called when a key was created, deleted or rotated: the next `find` builds the index again. */
  noteChange(): void {
    this.source = null;
    this.version++;
    this.onChange?.();
  }

  /** The kernel's keys, with an index that was built from them. */
  private refresh(): KeyTable {
    const keys = this.engine.peek(keysIn);
    if (keys !== this.source) this.index(keys);
    return keys;
  }

  private index(keys: KeyTable): void {
    const before = this.byHash;
    this.byHash = new Map();
    this.source = keys;
    for (const { record: key } of keys.values()) {
      const { hash: present, formerHash, formerUntil, generation } = key;
      const meter =
        before.get(present)?.caller.meter ??
        before.get(formerHash ?? "")?.caller.meter ??
        this.meters.ofKey(key.tenant);
      this.add(present, callerOf(key, generation, key.expiresAt ?? Number.POSITIVE_INFINITY, meter));
      if (formerHash !== null) this.add(formerHash, callerOf(key, generation - 1, formerUntil ?? 0, meter));
    }
    for (const keyId of this.uses.keys()) if (!keys.has(keyId)) this.uses.delete(keyId);
  }

  private add(secretHash: string, caller: Caller): void {
    const { keyId = "" } = caller.actor;
    this.byHash.set(secretHash, { keyId, hash: Buffer.from(secretHash), caller, use: this.useOf(keyId) });
  }
}

function callerOf(key: Key, generation: number, until: Millis, meter: Meter): Caller {
  const { id, role, tenant, scopes } = key;
  const actor = { role, agentId: null, epoch: null, keyId: id, scopes };
  return { tenant, actor, meter, secret: { keyId: id, generation }, until };
}

/**
 * Agents' tokens: tenant, id and epoch, the key that it was drawn with and its end, with an HMAC over them. Nothing is
 * stored for a token; that of an older instance has an older epoch, which the kernel refuses (A3). It ends with the
 * secret that it was drawn with. A restore changes the server's secret, and so voids every older token (S6).
 */
export interface AgentIdentity {
  readonly tenant: string;
  readonly agentId: string;
  readonly epoch: number;
  /** Null: drawn without a key. */
  readonly secret: KeySecret | null;
  readonly expiresAt: Millis;
}

export const agentTokenPrefix = "lha2.";
const prefix = agentTokenPrefix;
const withoutKey = "-";

export function mintAgentToken(secret: string, identity: AgentIdentity): string {
  const { tenant, agentId, epoch, secret: drawnWith, expiresAt } = identity;
  const { keyId, generation } = drawnWith ?? { keyId: withoutKey, generation: 0 };
  const named = `${tenant}.${epoch}.${Buffer.from(agentId).toString("base64url")}.${keyId}.${generation}.${expiresAt}`;
  return `${prefix}${named}.${sumOf(secret, named)}`;
}

/** null: not a token of this server. Whether it is still good is for its caller to ask. */
export function readAgentToken(secret: string, token: string): AgentIdentity | null {
  if (!token.startsWith(prefix)) return null;
  const end = token.lastIndexOf(".");
  const named = token.slice(prefix.length, end);
  const expected = Buffer.from(sumOf(secret, named));
  const shown = Buffer.from(token.slice(end + 1));
  if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) return null;
  const [tenant = "", epoch, id = "", keyId = withoutKey, generation, expiresAt] = named.split(".");
  return {
    tenant,
    agentId: Buffer.from(id, "base64url").toString(),
    epoch: Number(epoch),
    secret: keyId === withoutKey ? null : { keyId, generation: Number(generation) },
    expiresAt: Number(expiresAt),
  };
}

/** Which tenant it says it is for, whether it is good or not. */
export function tenantInToken(token: string): string {
  return token.slice(prefix.length).split(".", 1)[0] ?? "";
}

function sumOf(secret: string, text: string): string {
  return createHmac("sha256", secret).update(text).digest("base64url");
}

const tokensMax = 20_000;

interface KnownToken {
  readonly caller: Caller;
  /** The caller's `until` by the process's own clock, which is at hand for every request; both run alike (L7). */
  readonly until: number;
  readonly use: Use | null;
}

/** Tokens that were valid, so that their HMAC is not computed again for each request. */
export class AgentTokens {
  private readonly engine: Engine;
  private readonly keys: Keys;
  private readonly meters: Meters;
  private readonly lifetimeMs: number;
  private readonly known = new Map<string, KnownToken>();
  /** What they were checked with; with another secret (S6) or other keys none of them need be valid. */
  private secret = "";
  private keysVersion = -1;

  constructor(engine: Engine, keys: Keys, meters: Meters, lifetimeMs: number) {
    this.engine = engine;
    this.keys = keys;
    this.meters = meters;
    this.lifetimeMs = lifetimeMs;
  }

  /** For an agent's instance, drawn with what the caller has shown; with the time that it lasts. */
  mint(caller: Caller, tenant: string, agentId: string, epoch: number): { token: string; expiresInMs: number } {
    const { engine, lifetimeMs } = this;
    const { secret } = caller;
    const now = engine.now();
    const expiresAt = Math.min(now + lifetimeMs, this.keys.goodUntil(secret));
    const token = mintAgentToken(engine.secret, { tenant, agentId, epoch, secret, expiresAt });
    return { token, expiresInMs: Math.max(0, expiresAt - now) };
  }

  /** null: not a valid token. Whether its epoch is the agent's present one is the kernel's to say (A3). */
  find(token: string): Caller | null {
    if (this.engine.secret !== this.secret || this.keys.version !== this.keysVersion) this.forgetAll();
    const found = this.known.get(token) ?? this.check(token);
    if (found === null) return null;
    const now = performance.now();
    if (now >= found.until) return null;
    if (found.use !== null) found.use.at = now;
    return found.caller;
  }

  private forgetAll(): void {
    this.known.clear();
    this.secret = this.engine.secret;
    this.keysVersion = this.keys.version;
  }

  private check(token: string): KnownToken | null {
    const identity = readAgentToken(this.secret, token);
    if (identity === null) return null;
    const { tenant, agentId, epoch, secret, expiresAt } = identity;
    const until = Math.min(expiresAt, this.keys.goodUntil(secret));
    const drawn = secret === null ? {} : { drawnWith: secret.keyId };
    const actor = { role: "agent", agentId, epoch, ...drawn, scopes: this.keys.scopesOf(secret) } as const;
    const known: KnownToken = {
      until: until - this.engine.now() + performance.now(),
      caller: { tenant, actor, meter: this.meters.ofAgent(tenant, agentId), secret, until },
      use: secret === null || until === 0 ? null : this.keys.useOf(secret.keyId),
    };
    if (this.known.size >= tokensMax) {
      const [oldest] = this.known.keys();
      if (oldest !== undefined) this.known.delete(oldest);
    }
    this.known.set(token, known);
    return known;
  }
}
