/**
 * `--owner-only` (S5): on a machine that several people use, loopback is not a boundary. The operator of a server without
 * keys is then only the user that runs it, who can read the token. The token is made of the server's secret, so that it
 * survives a restart, and a restore voids it (S6).
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { defaultTenant } from "../../engine/recovery.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import { ownerFileWords, proofOf, removeOwner, writeOwner } from "../../trust/owner-token.ts";
import type { Caller } from "../service.ts";
import { ownerSecret } from "./credentials.ts";

export const ownOperator: Caller = {
  tenant: defaultTenant,
  actor: { role: "operator", agentId: null, epoch: null },
  meter: null,
  secret: null,
  until: Number.POSITIVE_INFINITY,
};

const owner: Caller = { ...ownOperator, secret: ownerSecret };

export const ownerTokenPrefix = "lho1.";

export class OwnerCredential {
  private readonly token: string;
  private url: string | null = null;
  /** For a request without a credential. */
  missing: Answer = errorAnswer("unauthorized", "The server is starting; try again.");

  constructor(secret: string) {
    this.token = `${ownerTokenPrefix}${createHmac("sha256", secret).update("owner").digest("base64url")}`;
  }

  /** Once the server listens, and its address is known. */
  publish(url: string): void {
    this.url = url;
    writeOwner({ url, token: this.token, pid: process.pid }, process.env);
    this.missing = errorAnswer(
      "unauthorized",
      `This server is its owner's alone: send \`Authorization: Bearer <token>\` with the token in ` +
        `${ownerFileWords(url, process.env)} of the user that runs it, or a key. Leasehold's own clients find it there.`,
    );
  }

  withdraw(): void {
    if (this.url !== null) removeOwner(this.url, process.env);
  }

  /** Whom the token stands for. */
  get caller(): Caller {
    return owner;
  }

  find(shown: string): Caller | null {
    const [own, other] = [Buffer.from(this.token), Buffer.from(shown)];
    return own.length === other.length && timingSafeEqual(own, other) ? owner : null;
  }

  /** By which a client knows this server before it shows the token; null before it listens. */
  prove(challenge: string): string | null {
    return this.url === null ? null : proofOf({ token: this.token, url: this.url }, challenge);
  }
}
