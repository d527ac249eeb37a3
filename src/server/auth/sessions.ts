/**
 * Sessions of browsers (S5): a cookie that stands for a key, so that the key itself is stored nowhere in the browser.
 *
 * Nothing is stored for one either: the cookie names the key's secret and an end, with an HMAC by the server's secret. So
 * every server on the same data takes it, it ends with the secret that it was made with, and a restore voids it (S6). One that
 * was signed out is remembered until its end by the process that serves, so that a copy of the cookie is void too.
 *
 * A browser sends a cookie by itself, so a cookie alone changes nothing: what is not a GET also needs a value that only a
 * page of this origin can read (CSRF). Another program of the same site can set a cookie of the same name in that browser: one
 * that is not a session is passed over, and two sessions at once are none. The cookie is HttpOnly and SameSite=Strict. It has no `Path`: by RFC 6265 that is
 * then the folder of `/v1/session`, as the browser sees it, also behind a proxy that serves it under a prefix.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Engine } from "../../engine/engine.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Caller } from "../service.ts";
import { type AgentTokens, hashSecret, type KeySecret, type Keys, ownerSecret } from "./credentials.ts";
import type { OwnerCredential } from "./owner.ts";

export const sessionMs = 12 * 60 * 60 * 1_000;
export const linkMs = 60_000;
/** Links of one key that were made and not used; of more its oldest is forgotten, and no other key's. */
const linksMax = 16;
const prefix = "lhs1.";
/** Cookies of the one name that are looked at; each costs an HMAC. */
const cookiesMax = 8;
/** Signed-out sessions of one key that are remembered; past that all its sessions that began before the oldest are over. */
const signedOutMax = 256;

/** Of one key. */
interface SignedOut {
  /** By what is random in it, when it would have ended. */
  readonly sessions: Map<string, Millis>;
  /** Those that would have ended by then are over too. */
  through: Millis;
}

export interface SignedOutSession {
  readonly id: string;
  readonly until: Millis;
  readonly keyId: string;
}

interface Link {
  readonly secret: KeySecret;
  readonly until: Millis;
}

export const csrfHeader = "leasehold-csrf";

export class Sessions {
  private readonly engine: Engine;
  private readonly keys: Keys;
  private readonly agentTokens: AgentTokens;
  private readonly owner: OwnerCredential | null;
  /** Where there are several shards, one for all of them. */
  private readonly secretOfAll: (() => string) | null;
  /** Called with each session that is signed out, where other servers have to know. */
  onSignedOut: ((session: SignedOutSession) => void) | null = null;
  /** By key, the links that it made, the oldest first. */
  private readonly links = new Map<string, Map<string, Link>>();
  private readonly signedOut = new Map<string, SignedOut>();

  constructor(
    engine: Engine,
    keys: Keys,
    agentTokens: AgentTokens,
    owner: OwnerCredential | null,
    secretOfAll: (() => string) | null = null,
  ) {
    this.engine = engine;
    this.secretOfAll = secretOfAll;
    this.keys = keys;
    this.agentTokens = agentTokens;
    this.owner = owner;
  }

  /** For whom a browser may stand: a key or the owner, but not an agent, whose token names the key that drew it. */
  static secretOf({ secret, actor }: Caller): KeySecret | null {
    return actor.agentId === null ? secret : null;
  }

  /** The value of `Set-Cookie`. */
  begin(secret: KeySecret, isSecure: boolean): string {
    const until = this.engine.now() + sessionMs;
    const named = `${secret.keyId}.${secret.generation}.${until}.${randomBytes(12).toString("base64url")}`;
    const value = `${prefix}${named}.${this.sum("session", named)}`;
    return this.cookie(value, sessionMs / 1_000, isSecure);
  }

  /** An agent's token is signed, names its agent and has an end: it is the value as it is. */
  beginAgent(token: string, isSecure: boolean): string {
    return this.cookie(token, sessionMs / 1_000, isSecure);
  }

  /** Ends the sessions that are shown, for every copy of the cookie. An agent's token stays what it is: it ends by itself. */
  end(cookies: string | undefined, isSecure: boolean): string {
    for (const shown of this.shownIn(cookies)) this.signOut(shown);
    return this.cookie("", 0, isSecure);
  }

  /** null: no session was shown. False: one that is not good, or no longer; or two of them. */
  find(cookies: string | undefined): Caller | false | null {
    const shown = this.shownIn(cookies);
    if (shown.length === 0) return null;
    const [found, ...more] = shown.flatMap((one) => this.callerIn(one) ?? []);
    return found === undefined || more.length > 0 ? false : found;
  }

  /** Each once; none of more than can be meant. */
  private shownIn(cookies: string | undefined): readonly string[] {
    if (cookies === undefined) return [];
    const shown = new Set(cookieValues(cookies, this.cookieName()));
    return shown.size > cookiesMax ? [""] : [...shown];
  }

  private callerIn(shown: string): Caller | null {
    const agent = this.agentTokens.find(shown);
    if (agent !== null) return { ...agent, csrf: this.sum("csrf", shown) };
    const session = this.read(shown);
    if (session === null) return null;
    const { named, secret, until, id } = session;
    const caller = this.callerOf(secret);
    if (caller === null || this.engine.now() >= until || this.isSignedOut(secret.keyId, id, until)) return null;
    return { ...caller, until: Math.min(caller.until, until), csrf: this.sum("csrf", named) };
  }

  private read(shown: string) {
    const end = shown.lastIndexOf(".");
    const named = shown.slice(prefix.length, end);
    if (!shown.startsWith(prefix) || !isSame(shown.slice(end + 1), this.sum("session", named))) return null;
    const [keyId = "", generation, until, id = ""] = named.split(".");
    return { named, secret: { keyId, generation: Number(generation) }, until: Number(until), id };
  }

  private isSignedOut(keyId: string, id: string, until: Millis): boolean {
    const known = this.signedOut.get(keyId);
    return known !== undefined && (until <= known.through || known.sessions.has(id));
  }

  private signOut(shown: string): void {
    const session = this.read(shown);
    if (session === null || this.engine.now() >= session.until) return;
    const { id, until, secret } = session;
    this.noteSignedOut({ id, until, keyId: secret.keyId });
    this.onSignedOut?.({ id, until, keyId: secret.keyId });
  }

  noteSignedOut(session: SignedOutSession): void {
    const now = this.engine.now();
    for (const [keyId, { sessions, through }] of this.signedOut) {
      for (const [id, until] of sessions) if (now >= until) sessions.delete(id);
      if (sessions.size === 0 && now >= through) this.signedOut.delete(keyId);
    }
    const { keyId } = session;
    if (now >= session.until || this.isSignedOut(keyId, session.id, session.until)) return;
    const known = this.signedOut.get(keyId) ?? { sessions: new Map<string, Millis>(), through: 0 };
    this.signedOut.set(keyId, known);
    known.sessions.set(session.id, session.until);
    const [oldest] = known.sessions;
    if (known.sessions.size <= signedOutMax || oldest === undefined) return;
    known.sessions.delete(oldest[0]);
    known.through = Math.max(known.through, oldest[1]);
  }

  /** Good once. */
  createLink(secret: KeySecret): string {
    const code = randomBytes(24).toString("base64url");
    const now = this.engine.now();
    this.forgetLinks(now);
    const links = this.links.get(secret.keyId) ?? new Map<string, Link>();
    this.links.set(secret.keyId, links);
    links.set(hashSecret(code), { secret, until: now + linkMs });
    const [oldest] = links.keys();
    if (links.size > linksMax && oldest !== undefined) links.delete(oldest);
    return code;
  }

  redeem(code: string): KeySecret | null {
    this.forgetLinks(this.engine.now());
    const id = hashSecret(code);
    for (const links of this.links.values()) {
      const link = links.get(id);
      if (link === undefined) continue;
      links.delete(id);
      return this.callerOf(link.secret) === null ? null : link.secret;
    }
    return null;
  }

  private forgetLinks(now: Millis): void {
    for (const [keyId, links] of this.links) {
      for (const [id, { until }] of links) if (now >= until) links.delete(id);
      if (links.size === 0) this.links.delete(keyId);
    }
  }

  /** The caller that a secret stands for, while it is good. */
  callerOf(secret: KeySecret): Caller | null {
    if (secret.keyId === ownerSecret.keyId) return this.owner?.caller ?? null;
    return this.keys.goodUntil(secret) > this.engine.now() ? this.keys.ofSecret(secret) : null;
  }

  private get secret(): string {
    return this.secretOfAll?.() ?? this.engine.secret;
  }

  private cookieName(): string {
    return cookieNameOf(this.secret);
  }

  private cookie(value: string, seconds: number, isSecure: boolean): string {
    const attributes = `Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
    return `${this.cookieName()}=${value}; ${attributes}`;
  }

  private sum(purpose: "session" | "csrf", named: string): string {
    return createHmac("sha256", this.secret).update(`${purpose}\n${named}`).digest("base64url");
  }
}

/** Its own for each data set: cookies do not tell ports apart, and two servers may be on one machine. */
function cookieNameOf(secret: string): string {
  return `leasehold_${hashSecret(`cookie\n${secret}`)
    .slice(0, 8)
    .replaceAll(/[^A-Za-z0-9]/g, "x")}`;
}

/** What a browser shows of sessions on this data, good or not. */
export function sessionsIn(cookies: string, secret: string): readonly string[] {
  return cookieValues(cookies, cookieNameOf(secret));
}

/** The key that a session says it stands for. */
export function keyIdInSession(shown: string): string {
  return shown.slice(prefix.length).split(".", 1)[0] ?? "";
}

export function isSame(shown: string, expected: string): boolean {
  const [one, other] = [Buffer.from(shown), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function cookieValues(cookies: string, name: string): string[] {
  return cookies.split(";").flatMap((part) => {
    const at = part.indexOf("=");
    return at !== -1 && part.slice(0, at).trim() === name ? [part.slice(at + 1).trim()] : [];
  });
}
