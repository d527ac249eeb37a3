/**
 * The owner's token of a server on this machine (S5), for a client that was given no credential. What listens there has
 * to prove that it knows the token before it is shown: at first, after a break, and after a silence, because meanwhile
 * another user may listen on the port.
 */
import { TrustProblem } from "../trust/loopback.ts";
import {
  challengeHeader,
  checkProof,
  type FoundOwner,
  findOwner,
  newChallenge,
  proofHeader,
} from "../trust/owner-token.ts";
import { LeaseholdError } from "./errors.ts";
import type { Fetch } from "./http.ts";
import { broken } from "./http-form.ts";

/** Within this time of an answer the peer is taken for the same. */
const provedMs = 5_000;

export class OwnerLogin {
  private readonly given: string;
  private owner: FoundOwner | null = null;
  private hasLooked = false;
  private provedAt = Number.NEGATIVE_INFINITY;

  constructor(url: string) {
    this.given = url;
  }

  /** Of the address that the token is for, where `localhost` could be another. */
  get url(): string {
    return this.owner?.url ?? this.given;
  }

  get secret(): string | null {
    return this.owner?.token ?? null;
  }

  /** Whether a call can be sent without `ready`. */
  get isReady(): boolean {
    return this.hasLooked && (this.owner === null || performance.now() - this.provedAt < provedMs);
  }

  /** Before anything is sent. Where the owner has left no token, there is nothing to do. */
  async ready(fetcher: Fetch, signal: AbortSignal): Promise<void> {
    if (!this.hasLooked) this.look();
    const { owner } = this;
    if (owner === null || performance.now() - this.provedAt < provedMs) return;
    const challenge = newChallenge();
    let response: Response;
    try {
      response = await fetcher(`${owner.url}/healthz`, { headers: { [challengeHeader]: challenge }, signal });
      await response.arrayBuffer();
    } catch (error) {
      throw broken(error, false);
    }
    try {
      checkProof(owner, challenge, response.headers.get(proofHeader));
    } catch (error) {
      // It may be a later server, with a file of its own.
      this.hasLooked = false;
      throw refusal(error);
    }
    this.provedAt = performance.now();
  }

  /** The peer has answered, and is therefore the one that has proved itself. */
  heard(): void {
    if (this.owner !== null) this.provedAt = performance.now();
  }

  lost(): void {
    this.provedAt = Number.NEGATIVE_INFINITY;
  }

  /** After a 401: whether there is a token now, of a server that has started since. */
  lookAgain(): boolean {
    const before = this.secret;
    this.look();
    this.lost();
    return this.secret !== null && this.secret !== before;
  }

  private look(): void {
    try {
      this.owner = findOwner(this.given, process.env);
      this.hasLooked = true;
    } catch (error) {
      throw refusal(error);
    }
  }
}

function refusal(error: unknown): unknown {
  if (!(error instanceof TrustProblem)) return error;
  return new LeaseholdError({ code: "bad_answer", detail: `${error.message}.`, cause: error });
}
