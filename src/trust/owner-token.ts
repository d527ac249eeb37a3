/**
 * The credential of `--owner-only` (S5): a token in a file that only the user who runs the server can read, named after
 * the address that the server listens on, so that this user's clients find it by themselves.
 *
 * Any user can listen on a port that is free, so a client asks for a proof before it shows the token: it sends a random
 * challenge, and the server answers with an HMAC over it and its own address. A proof of another address, relayed by
 * somebody who listens on this one, is of no use.
 *
 * Guards load this at each step of a coding agent, and browsers with the SDK; so it imports nothing.
 */
import { isLoopback, TrustProblem } from "./loopback.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export const challengeHeader = "leasehold-challenge";
export const proofHeader = "leasehold-proof";
export const challengePattern = /^[A-Za-z0-9_-]{16,128}$/;

/** What the file says. */
export interface Owner {
  /** Of the server, by the address that it listens on. */
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

export interface FoundOwner extends Owner {
  readonly file: string;
}

/** Also the folder of what guards keep. */
export function stateFolder({ LEASEHOLD_STATE, XDG_STATE_HOME, HOME }: Environment): string {
  const { join } = process.getBuiltinModule("node:path");
  if (LEASEHOLD_STATE) return LEASEHOLD_STATE;
  const home = HOME || process.getBuiltinModule("node:os").homedir();
  return join(XDG_STATE_HOME || join(home, ".local", "state"), "leasehold");
}

export function ownerFile(url: string, environment: Environment): string {
  const { join } = process.getBuiltinModule("node:path");
  const { hostname, port, protocol } = new URL(url);
  const bare = hostname.replace(/^\[|\]$/g, "").replaceAll(":", "_");
  return join(stateFolder(environment), "owner", `${bare}-${port || (protocol === "https:" ? "443" : "80")}.json`);
}

/** For `~` in messages that other users may read. */
export function ownerFileWords(url: string, environment: Environment): string {
  const home = environment["HOME"] || process.getBuiltinModule("node:os").homedir();
  const file = ownerFile(url, environment);
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file;
}

export function writeOwner(owner: Owner, environment: Environment): void {
  const { mkdirSync, renameSync, writeFileSync } = process.getBuiltinModule("node:fs");
  const { dirname } = process.getBuiltinModule("node:path");
  const file = ownerFile(owner.url, environment);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${owner.pid}.new`;
  writeFileSync(temporary, `${JSON.stringify(owner)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}

/** What a server that listens there now has no use for: its own file at its end, or one that a crash left. */
export function removeOwner(url: string, environment: Environment): void {
  const { rmSync } = process.getBuiltinModule("node:fs");
  rmSync(ownerFile(url, environment), { force: true });
}

/**
 * The token for the server at `url`, which is on loopback; null where its owner has left none. `localhost` may mean two
 * addresses, and another user may listen on the second: the found one's URL says which to use.
 */
export function findOwner(url: string, environment: Environment): FoundOwner | null {
  const { hostname } = new URL(url);
  const hosts = hostname === "localhost" ? ["127.0.0.1", "[::1]"] : [hostname];
  for (const host of hosts) {
    const place = new URL(url);
    place.hostname = host;
    const found = readOwner(ownerFile(place.href, environment));
    if (found !== null && originOf(found.url) === place.origin) {
      return { ...found, url: `${place.origin}${place.pathname}`.replace(/\/+$/, "") };
    }
  }
  return null;
}

function readOwner(file: string): FoundOwner | null {
  const { closeSync, constants, fstatSync, openSync, readFileSync } = process.getBuiltinModule("node:fs");
  let handle: number;
  try {
    handle = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new TrustProblem(`the owner's token in ${file} cannot be read: ${code}`);
  }
  try {
    const { uid, mode } = fstatSync(handle);
    const own = process.getuid?.();
    if (own !== undefined && (uid !== own || (mode & 0o077) !== 0)) {
      throw new TrustProblem(`${file} is not this user's alone, and so not used; delete it and start the server again`);
    }
    const read: unknown = JSON.parse(readFileSync(handle, "utf8"));
    const { url, token, pid } = (read ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof url !== "string" || typeof token !== "string" || typeof pid !== "number") return null;
    return { url, token, pid, file };
  } catch (error) {
    if (error instanceof TrustProblem) throw error;
    // Not ours, or broken off: the server writes it again at its next start.
    return null;
  } finally {
    closeSync(handle);
  }
}

function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}

export function newChallenge(): string {
  return process.getBuiltinModule("node:crypto").randomBytes(24).toString("base64url");
}

export function proofOf({ token, url }: Pick<Owner, "token" | "url">, challenge: string): string {
  const { createHmac } = process.getBuiltinModule("node:crypto");
  return createHmac("sha256", token)
    .update(`leasehold owner\n${new URL(url).origin}\n${challenge}`)
    .digest("base64url");
}

/** Throws unless what answers has proved that it knows the token. */
export function checkProof(owner: FoundOwner, challenge: string, proof: string | null | undefined): void {
  const { timingSafeEqual } = process.getBuiltinModule("node:crypto");
  const expected = Buffer.from(proofOf(owner, challenge));
  const shown = Buffer.from(proof ?? "");
  if (shown.length === expected.length && timingSafeEqual(shown, expected)) return;
  throw new TrustProblem(
    `what answers at ${owner.url} is not the server that wrote ${owner.file}, and was sent no credential; ` +
      "see who listens there, and delete the file if its server is gone",
  );
}

/**
 * The owner's token for a server that has proved itself just now; null where there is none. `ask` sends a request with
 * these headers, and returns the header of the answer that has the proof.
 */
export async function findProvedOwner(
  url: string,
  environment: Environment,
  ask: (url: string, headers: Readonly<Record<string, string>>) => Promise<unknown>,
): Promise<FoundOwner | null> {
  const owner = isLoopback(new URL(url).hostname) ? findOwner(url, environment) : null;
  if (owner === null) return null;
  const challenge = newChallenge();
  const proof = await ask(`${owner.url}/healthz`, { [challengeHeader]: challenge });
  checkProof(owner, challenge, typeof proof === "string" ? proof : null);
  return owner;
}
