/** From what a caller shows to who it is (S5): a key, an agent's token, or nothing at all. */
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Engine } from "../../engine/engine.ts";
import type { Key } from "../../kernel/contract/records.ts";
import { keysIn } from "../../kernel/views.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import type { Caller, Service } from "../service.ts";
import { ownOperator } from "./owner.ts";
import type { Meters } from "./rate-limit.ts";

/** With which an operator chooses the tenant that a request is about. */
export const tenantHeader = "leasehold-tenant";

/** The headers of a request, as far as they say who sends it. */
export interface Credentials {
  readonly authorization?: string | undefined;
  /** The tenant that is asked for, if one is. */
  readonly [tenantHeader]?: string | readonly string[] | undefined;
  /** What proxies add: the request may come from anywhere. */
  readonly forwarded?: string | undefined;
  readonly via?: string | undefined;
  readonly "x-forwarded-for"?: string | readonly string[] | undefined;
  readonly "x-forwarded-host"?: string | readonly string[] | undefined;
  readonly "x-forwarded-proto"?: string | readonly string[] | undefined;
  readonly "x-real-ip"?: string | readonly string[] | undefined;
}

/**
 * A credential that is shown is always checked. Without one, a server that listens on loopback and has no keys takes
 * the caller for its operator; but not one that a proxy has let in, nor where only its owner is (M6).
 */
export function authenticate(service: Service, shown: Credentials, isLoopback: boolean): Caller | Answer {
  const { engine, keys } = service;
  // Without its records the server knows no key, and would take anybody for anything.
  if (!engine.isServing) return unavailable;
  const { authorization } = shown;
  // Node joins a repeated header into one text.
  const tenant = shown[tenantHeader] as string | undefined;
  if (authorization === undefined) {
    if (!isLoopback || !keys.isEmpty) return missing;
    if (service.owner !== null) return service.owner.missing;
    if (shown.forwarded ?? shown.via ?? shown["x-forwarded-for"] ?? shown["x-forwarded-host"]) return throughProxy;
    if (shown["x-forwarded-proto"] ?? shown["x-real-ip"]) return throughProxy;
    return tenant === undefined ? ownOperator : { ...ownOperator, tenant };
  }
  const scheme = authorization.slice(0, 7);
  if (scheme !== "Bearer " && scheme.toLowerCase() !== "bearer ") return invalid;
  const secret = authorization.slice(7).trim();
  const caller = service.agentTokens.find(secret) ?? keys.find(secret) ?? service.owner?.find(secret) ?? null;
  if (caller === null) return invalid;
  if (tenant === undefined || tenant === caller.tenant) return caller;
  // Only an operator has more than one tenant.
  return caller.actor.role === "operator" ? { ...caller, tenant } : otherTenant;
}

export function isCaller(found: Caller | Answer): found is Caller {
  return "actor" in found;
}

const unavailable = errorAnswer(
  "database_unavailable",
  "The database is not available; try again, with the same request_id.",
  { retry_after_ms: 1_000 },
);
const missing = errorAnswer(
  "unauthorized",
  "This needs a credential: send `Authorization: Bearer <key or agent token>`.",
);
const throughProxy = errorAnswer(
  "unauthorized",
  "This request came through a proxy, so that it may be anybody's: create a key (`leasehold keys create`), and send it.",
);
const invalid = errorAnswer(
  "unauthorized",
  "The credential is not known here; send `Authorization: Bearer <key or agent token>` with one that is valid.",
);
const otherTenant = errorAnswer(
  "forbidden",
  "The credential is for another tenant; leave the Leasehold-Tenant header out.",
);

/**
 * Agents' tokens: tenant, id and epoch, with an HMAC over them. Nothing is stored for a token; that of an older instance
 * has an older epoch, which the kernel refuses (A3). A restore changes the secret, and so voids every older token (S6).
 */
export interface AgentIdentity {
  readonly tenant: string;
  readonly agentId: string;
  readonly epoch: number;
}

const prefix = "lha1.";

export function mintAgentToken(secret: string, { tenant, agentId, epoch }: AgentIdentity): string {
  const named = `${tenant}.${epoch}.${Buffer.from(agentId).toString("base64url")}`;
  return `${prefix}${named}.${sumOf(secret, named)}`;
}

/** null: not a token of this server. */
export function readAgentToken(secret: string, token: string): AgentIdentity | null {
  if (!token.startsWith(prefix)) return null;
  const [tenant, epoch, id, sum, ...rest] = token.slice(prefix.length).split(".");
  if (tenant === undefined || epoch === undefined || id === undefined || sum === undefined || rest.length > 0)
    return null;
  const expected = Buffer.from(sumOf(secret, `${tenant}.${epoch}.${id}`));
  const shown = Buffer.from(sum);
  if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) return null;
  return { tenant, agentId: Buffer.from(id, "base64url").toString(), epoch: Number(epoch) };
}

function sumOf(secret: string, text: string): string {
  return createHmac("sha256", secret).update(text).digest("base64url");
}

const tokensMax = 20_000;

/** Tokens that were valid, so that their HMAC is not computed again for each request. */
export class AgentTokenCache {
  private readonly engine: Engine;
  private readonly meters: Meters;
  private readonly known = new Map<string, Caller>();
  /** The secret that they were checked with; with another one (S6) none of them is valid. */
  private secret = "";

  constructor(engine: Engine, meters: Meters) {
    this.engine = engine;
    this.meters = meters;
  }

  /** null: not a token of this server. Whether its epoch is the agent's present one is the kernel's to say (A3). */
  find(token: string): Caller | null {
    const { secret } = this.engine;
    if (secret !== this.secret) {
      this.known.clear();
      this.secret = secret;
    }
    return this.known.get(token) ?? this.check(token);
  }

  private check(token: string): Caller | null {
    const identity = readAgentToken(this.secret, token);
    if (identity === null) return null;
    const { tenant, agentId, epoch } = identity;
    const caller: Caller = {
      tenant,
      actor: { role: "agent", agentId, epoch },
      meter: this.meters.ofAgent(tenant, agentId),
    };
    if (this.known.size >= tokensMax) {
      const [oldest] = this.known.keys();
      if (oldest !== undefined) this.known.delete(oldest);
    }
    this.known.set(token, caller);
    return caller;
  }
}

/** A secret has 256 random bits, so that a plain hash cannot be undone by guessing; slow ones are for passwords. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

export function newKeyId(): string {
  return `key_${randomBytes(8).toString("hex")}`;
}

export function newSecret(): string {
  return `lhk_${randomBytes(32).toString("base64url")}`;
}

interface KnownKey {
  readonly key: Key;
  readonly hash: Buffer;
  readonly caller: Caller;
}

/**
 * Keys, found by the hash of the secret that a caller shows. The kernel has them by id; the index by hash is built when it
 * is first needed, and again after a key was created or deleted, or the engine has recovered.
 */
export class Keys {
  private readonly engine: Engine;
  private readonly meters: Meters;
  private byHash = new Map<string, KnownKey>();
  /** What the index was built from. After a recovery the engine has another map. */
  private source: ReturnType<typeof keysIn> | null = null;
  /** Called after each change, so that connections which were opened with a deleted key can be ended. */
  onChange: (() => void) | null = null;

  constructor(engine: Engine, meters: Meters) {
    this.engine = engine;
    this.meters = meters;
  }

  get isEmpty(): boolean {
    return this.engine.peek(keysIn).size === 0;
  }

  /**
   * Only the secret's hash is looked up, so timing reveals nothing about any key. What is found is compared with the
   * kernel's own record, so that a deleted key is never found.
   */
  find(secret: string): Caller | null {
    const keys = this.engine.peek(keysIn);
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

  private index(keys: ReturnType<typeof keysIn>): void {
    const before = this.byHash;
    this.byHash = new Map();
    this.source = keys;
    for (const { record: key } of keys.values()) {
      const meter = before.get(key.hash)?.caller.meter ?? this.meters.ofKey(key.tenant);
      const caller: Caller = {
        tenant: key.tenant,
        actor: { role: key.role, agentId: null, epoch: null, keyId: key.id, scopes: key.scopes },
        meter,
      };
      this.byHash.set(key.hash, { key, hash: Buffer.from(key.hash), caller });
    }
  }
}
