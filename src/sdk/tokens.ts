/** Tokens in the hands of those who hold them: looked into and made narrower, offline, in a browser too (G4). */
import { type Caveat, type FoundCaveat, inspect, narrow as narrowBy, type TokenClaims } from "../token/index.ts";
import { LeaseholdError } from "./errors.ts";

/** What the token is to allow from now on; nobody can widen it again. */
export interface Narrowing {
  /** By the server's clock. A lease's own `narrow` also takes `expiresInMs`, which needs no clock that agrees. */
  readonly expiresAt?: Date | number | undefined;
  /** This path of the resource, and what is below it. */
  readonly path?: string | undefined;
  /** Such as `read`, `write`, `connect` and `run`. */
  readonly operations?: readonly string[] | undefined;
  /** The program that may use it, by its real path. */
  readonly program?: string | undefined;
  /** A label that the resource must have. */
  readonly hardware?: string | undefined;
  /** In both directions, over all operations together. */
  readonly bytesMax?: number | undefined;
}

/** What a token says of itself; only its cell and the server know whether it is true. */
export interface InspectedToken extends TokenClaims {
  readonly caveats: readonly FoundCaveat[];
  /** The earliest end that it names, in milliseconds since 1970 by the server's clock. */
  readonly usableUntil: number;
}

/** The same token for less. Throws `token_invalid` where it is none, or what is asked for cannot be said in one. */
export function narrow(token: string, narrowing: Narrowing): string {
  const narrower = narrowBy(token, caveatsOf(narrowing));
  if (typeof narrower !== "string") throw new LeaseholdError(narrower);
  return narrower;
}

export function inspectToken(token: string): InspectedToken {
  const inspected = inspect(token);
  if ("code" in inspected) throw new LeaseholdError(inspected);
  const { claims, caveats, expiresAt } = inspected;
  return { ...claims, caveats, usableUntil: expiresAt };
}

function caveatsOf({ expiresAt, path, operations, program, hardware, bytesMax }: Narrowing): readonly Caveat[] {
  const caveats: Caveat[] = [];
  if (expiresAt !== undefined) caveats.push({ type: "expiry", expiresAt: Math.floor(Number(expiresAt)) });
  if (path !== undefined) caveats.push({ type: "path", path });
  // The token has each once and in order; nobody should have to write them so.
  if (operations !== undefined) caveats.push({ type: "operations", operations: [...new Set(operations)].sort() });
  if (program !== undefined) caveats.push({ type: "program", program });
  if (hardware !== undefined) caveats.push({ type: "hardware", hardware });
  if (bytesMax !== undefined) caveats.push({ type: "bytes", bytesMax });
  return caveats;
}
