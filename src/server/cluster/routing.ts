/**
 * Which shard a request is for: by what it is about where that is the directory or a tenant that it names, and otherwise by
 * the tenant that its credential is for. The credential is not checked here; the shard's leader does that.
 */
import { defaultTenant } from "../../engine/recovery.ts";
import { tenantHeader } from "../auth/authenticate.ts";
import { agentTokenPrefix, ownerSecret, tenantInToken } from "../auth/credentials.ts";
import { ownerTokenPrefix } from "../auth/owner.ts";
import { keyIdInSession, sessionsIn } from "../auth/sessions.ts";
import { passedOnHeader, shardIn } from "../http/hand-over.ts";
import { pagePaths } from "../http/unrouted.ts";
import type { Directory, KeyHolder } from "./directory.ts";
import type { RequestHead } from "./request-head.ts";
import { directoryShard, shardOfTenant } from "./shards.ts";

/** "any": whichever shard is at hand. Null: its credential or tenant is not known here, at least not yet. */
export type Route = number | "any" | null;

interface Caller extends KeyHolder {
  /** An agent's token is good in its own shard alone. */
  readonly isAgent: boolean;
}

const keyless: Caller = { tenant: defaultTenant, role: "operator", isAgent: false };
/** Remembered, so that a key is not hashed for each request; past these all are forgotten. */
const callersMax = 10_000;

export class Routing {
  readonly #shards: number;
  readonly #directory: Directory;
  #callers = new Map<string, Caller>();
  #version = -1;

  constructor(shards: number, directory: Directory) {
    this.#shards = shards;
    this.#directory = directory;
  }

  routeOf({ method = "", url = "", headers }: RequestHead): Route {
    const path = url.split("?", 1)[0] ?? "";
    if (method === "OPTIONS" || everywhere.has(path) || path.startsWith("/assets/")) return "any";
    const caller = this.#callerOf(headers);
    if (caller === null) return null;
    const named = headers[tenantHeader];
    if (caller.isAgent) return this.#home(caller.tenant);
    if (path === "/metrics" && caller.role === "operator" && named === undefined) return "any";
    const [, version, noun, id, verb] = path.split("/");
    if (version !== "v1") return this.#knownHome(typeof named === "string" ? named : caller.tenant);
    if (noun === "policies" && id !== "test") return directoryShard;
    if (noun === "keys" && verb !== "assign") return directoryShard;
    if (noun === "keys") return this.#knownHome(this.#directory.holderOfKey(decoded(id))?.tenant);
    if (noun === "tenants") return id === undefined ? directoryShard : this.#knownHome(decoded(id));
    if (noun === "audit" && url.includes("directory=true")) return directoryShard;
    if (noun === "session" && method === "POST") return directoryShard;
    return this.#knownHome(typeof named === "string" ? named : caller.tenant);
  }

  /** Asks the directory again where something is not known; what stays unknown is the directory's to refuse. */
  find(head: RequestHead): number | "any" | Promise<number | "any"> {
    const found = this.routeOf(head);
    if (found !== null) return found;
    return this.#directory
      .refresh()
      .catch(() => undefined)
      .then(() => this.routeOf(head) ?? this.#unknown(head));
  }

  /** For a connection, by its first request. Another server may have chosen already; whether it has is checked later. */
  chooseFor(head: RequestHead): number | "any" | Promise<number | "any"> {
    const said = head.headers[passedOnHeader];
    return typeof said === "string" ? (shardIn(said) ?? directoryShard) : this.find(head);
  }

  #unknown({ headers }: RequestHead): number {
    const caller = this.#callerOf(headers);
    const named = headers[tenantHeader];
    return caller === null || typeof named !== "string" ? directoryShard : this.#home(named);
  }

  #home(tenant: string): number {
    return shardOfTenant(tenant, this.#shards);
  }

  #knownHome(tenant: string | undefined): number | null {
    return tenant !== undefined && this.#directory.hasTenant(tenant) ? this.#home(tenant) : null;
  }

  #callerOf(headers: RequestHead["headers"]): Caller | null {
    const { authorization, cookie, "x-api-key": apiKey } = headers;
    if (typeof authorization === "string") return this.#known(bearerIn(authorization));
    if (typeof apiKey === "string") return this.#known(apiKey);
    return typeof cookie === "string" ? this.#inCookies(cookie) : keyless;
  }

  #known(secret: string): Caller | null {
    if (this.#version !== this.#directory.version) {
      this.#callers.clear();
      this.#version = this.#directory.version;
    }
    const known = this.#callers.get(secret);
    if (known !== undefined) return known;
    const found = this.#holderOf(secret);
    if (found === null) return null;
    if (this.#callers.size >= callersMax) this.#callers.clear();
    this.#callers.set(secret, found);
    return found;
  }

  #holderOf(secret: string): Caller | null {
    if (secret.startsWith(ownerTokenPrefix)) return keyless;
    if (secret.startsWith(agentTokenPrefix)) return agentOf(secret);
    const holder = this.#directory.holderOfSecret(secret);
    return holder === null ? null : { ...holder, isAgent: false };
  }

  #inCookies(cookies: string): Caller | null {
    const secret = this.#directory.contents?.secret;
    const [shown] = secret === undefined ? [] : sessionsIn(cookies, secret);
    if (shown === undefined) return keyless;
    if (shown.startsWith(agentTokenPrefix)) return agentOf(shown);
    const keyId = keyIdInSession(shown);
    if (keyId === ownerSecret.keyId) return keyless;
    const holder = this.#directory.holderOfKey(keyId);
    return holder === null ? null : { ...holder, isAgent: false };
  }
}

function agentOf(token: string): Caller {
  return { tenant: tenantInToken(token), role: "agent", isAgent: true };
}

/** The same everywhere. */
const everywhere: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/openapi.json", ...pagePaths]);

function bearerIn(authorization: string): string {
  return authorization.slice(0, 7).toLowerCase() === "bearer " ? authorization.slice(7).trim() : authorization;
}

function decoded(part = ""): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
