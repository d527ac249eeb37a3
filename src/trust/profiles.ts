/**
 * Profiles: servers that a user names once, with how to reach them, and then uses by name (`--profile prod`,
 * LEASEHOLD_PROFILE). They are the user's own, so a key may be sent there. The file holds no key, only where one is.
 *
 * Guards load this at each step of a coding agent; so it imports nothing.
 */
import { TrustProblem } from "./loopback.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Profile {
  readonly url: string;
  readonly key_file?: string;
  readonly tenant?: string;
  readonly tls_ca?: string;
  readonly tls_cert?: string;
  readonly tls_key?: string;
}

export const profileFields = ["url", "key_file", "tenant", "tls_ca", "tls_cert", "tls_key"] as const;
export const profileNamePattern = /^[\p{L}\p{N}_][\p{L}\p{N}._-]{0,63}$/u;

export function profilesFile({ LEASEHOLD_PROFILES, XDG_CONFIG_HOME, HOME }: Environment): string {
  if (LEASEHOLD_PROFILES) return LEASEHOLD_PROFILES;
  const { join } = process.getBuiltinModule("node:path");
  const home = HOME || process.getBuiltinModule("node:os").homedir();
  return join(XDG_CONFIG_HOME || join(home, ".config"), "leasehold", "profiles.json");
}

/** By name; none where there is no file. */
export function readProfiles(environment: Environment): Readonly<Record<string, Profile>> {
  const file = profilesFile(environment);
  const { readFileSync } = process.getBuiltinModule("node:fs");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return {};
    throw new TrustProblem(`the profiles in ${file} cannot be read: ${code}`);
  }
  const read = parse(text);
  if (!isObject(read)) throw new TrustProblem(`${file} is not JSON with an object for each profile`);
  for (const [name, profile] of Object.entries(read)) checkProfile(file, name, profile);
  return read as Readonly<Record<string, Profile>>;
}

/** A name that is not there is a mistake, and never the server that is used otherwise. */
export function profileNamed(name: string, environment: Environment): Profile {
  const profiles = readProfiles(environment);
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (found !== undefined) return found;
  const known = Object.keys(profiles);
  const there = known.length === 0 ? "there are none" : `there are ${known.join(", ")}`;
  throw new TrustProblem(`unknown profile "${name.slice(0, 80)}"; ${there}: see \`leasehold profiles\``);
}

function checkProfile(file: string, name: string, profile: unknown): void {
  const isRight =
    isObject(profile) &&
    typeof profile["url"] === "string" &&
    Object.entries(profile).every(
      ([field, value]) => (profileFields as readonly string[]).includes(field) && typeof value === "string",
    );
  if (isRight && profileNamePattern.test(name)) return;
  throw new TrustProblem(
    `profile "${name.slice(0, 80)}" in ${file} is not right; it takes "url", and of ${profileFields.slice(1).join(", ")} what is needed, as texts`,
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
