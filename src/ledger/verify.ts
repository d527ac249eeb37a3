/**
 * R6: reads a ledger from its first receipt to its last and finds everything that was changed, removed, added or moved.
 * Every tenant has its own chain; chains may be interleaved, as in the store. After the first break the rest of a chain
 * proves nothing, so it is only counted; the other chains are checked further.
 */
import type { SignedHead, StoredReceipt } from "../store/store.ts";
import { firstDifference, notFollowing } from "./columns.ts";
import { type Finding, type FindingCode, findingsMax } from "./findings.ts";
import { headText } from "./head.ts";
import { type PublicLedgerKey, type SignatureCheck, signatureCheck } from "./keys.ts";
import { quoted } from "./ledger-json.ts";
import { beginsAs, genesisHash, hashOf, textStart } from "./seal.ts";
export interface VerifyOptions {
  /** Each tenant's signed heads, smallest sequence first; each is checked when the chain reaches it. */
  readonly heads?: ReadonlyMap<string, Iterable<SignedHead>>;
  /** Heads that were saved elsewhere: they reveal a cut tail even if the ledger's own heads were cut too. */
  readonly anchors?: readonly SignedHead[];
  readonly keys?: readonly PublicLedgerKey[];
  /** Called every few thousand receipts with the number so far. */
  readonly onProgress?: (receipts: number) => void;
}

export interface Verdict {
  readonly receipts: number;
  readonly heads: number;
  readonly findings: readonly Finding[];
  readonly ends: readonly ChainEnd[];
  /** Keys whose signatures were valid. */
  readonly keyIds: readonly string[];
}

/** The last intact receipt of a tenant's chain. */
export type ChainEnd = Pick<StoredReceipt, "tenant" | "sequence" | "hash">;

/** One link of a chain: a receipt as a row of the store, or as a line of an export, which has no columns. */
export type Link = Pick<StoredReceipt, "tenant" | "sequence" | "hash" | "body">;

interface Chain {
  readonly tenant: string;
  sequence: number;
  hash: string;
  isBroken: boolean;
  readonly heads: HeadQueue[];
}

/** Heads that are not reached yet, one at a time. */
interface HeadQueue {
  readonly rest: Iterator<SignedHead>;
  next: SignedHead | null;
  readonly what: "head" | "anchor";
}

const progressEvery = 5_000;

/** Checks a whole ledger. */
export function verifyLedger(rows: Iterable<StoredReceipt>, options: VerifyOptions = {}): Verdict {
  const verifier = new Verifier(options);
  for (const row of rows) verifier.takeRow(row);
  return verifier.finish();
}

export class Verifier {
  private readonly options: VerifyOptions;
  private readonly chains = new Map<string, Chain>();
  private readonly checks = new Map<string, SignatureCheck>();
  private readonly goodKeys = new Set<string>();
  private readonly findings: Finding[] = [];
  private receipts = 0;
  private heads = 0;
  /** Rows of one tenant are mostly adjacent. */
  private last: Chain | null = null;

  constructor(options: VerifyOptions) {
    this.options = options;
    for (const key of options.keys ?? []) this.trust(key);
  }

  /** Adds a key whose signatures count from now on; false if it is not a key, or not the one it claims to be. */
  trust(key: PublicLedgerKey): boolean {
    const check = signatureCheck(key);
    if (check !== null) this.checks.set(key.keyId, check);
    return check !== null;
  }

  takeRow(row: StoredReceipt): void {
    const chain = this.chainOf(row.tenant);
    if (!this.isNext(chain, row)) return;
    if (!beginsAs(row.body, row, chain.hash) && !row.body.startsWith(textStart(row, chain.hash))) {
      const difference = firstDifference(row, chain.hash);
      if (difference !== null) {
        return this.breakChain(chain, difference.isChain ? "chain_broken" : "column_changed", difference.detail);
      }
    }
    this.extend(chain, row.hash);
  }

  /** A line of an export: tenant and number were read from its text. */
  takeLink(link: Link): void {
    const chain = this.chainOf(link.tenant);
    if (!this.isNext(chain, link)) return;
    const start = `{"sequence":${link.sequence},"previous_hash":"${chain.hash}","tenant_id":${quoted(link.tenant)},`;
    if (!link.body.startsWith(start)) return this.breakChain(chain, "chain_broken", notFollowing(link.sequence));
    this.extend(chain, link.hash);
  }

  /** A head that follows the receipts it covers. */
  takeHead(head: SignedHead): void {
    const chain = this.chainOf(head.tenant);
    if (!chain.isBroken) this.checkHead(head, chain, "head");
  }

  /** A finding outside of any chain. */
  note(finding: Finding): void {
    if (this.findings.length < findingsMax) this.findings.push(finding);
  }

  get firstFinding(): Finding | null {
    return this.findings[0] ?? null;
  }

  endOf(tenant: string): ChainEnd & { readonly isBroken: boolean } {
    const { sequence, hash, isBroken } = this.chainOf(tenant);
    return { tenant, sequence, hash, isBroken };
  }

  finish(): Verdict {
    for (const tenant of this.options.heads?.keys() ?? []) this.chainOf(tenant);
    for (const { tenant } of this.options.anchors ?? []) this.chainOf(tenant);
    for (const chain of this.chains.values()) this.checkEnd(chain);
    this.options.onProgress?.(this.receipts);
    return {
      receipts: this.receipts,
      heads: this.heads,
      findings: this.findings,
      ends: [...this.chains.values()].map(({ tenant, sequence, hash }) => ({ tenant, sequence, hash })),
      keyIds: [...this.goodKeys],
    };
  }

  private isNext(chain: Chain, { sequence, hash, body }: Link): boolean {
    this.receipts += 1;
    if (this.receipts % progressEvery === 0) this.options.onProgress?.(this.receipts);
    if (chain.isBroken) return false;
    const expected = chain.sequence + 1;
    if (sequence > expected) this.breakChain(chain, "receipts_missing", missing(expected, sequence));
    else if (sequence !== expected) {
      const where = `after receipt ${chain.sequence}, where it does not belong`;
      this.breakChain(chain, "receipt_out_of_place", `a receipt numbered ${sequence} comes ${where}`);
    } else if (hashOf(body) !== hash) {
      this.breakChain(chain, "receipt_changed", `the text of receipt ${sequence} and its hash do not agree`);
    }
    return !chain.isBroken;
  }

  private extend(chain: Chain, hash: string): void {
    chain.sequence += 1;
    chain.hash = hash;
    for (const queue of chain.heads) this.meetHeads(chain, queue);
  }

  private meetHeads(chain: Chain, queue: HeadQueue): void {
    while (queue.next !== null && queue.next.sequence <= chain.sequence) {
      this.checkHead(queue.next, chain, queue.what);
      queue.next = queue.rest.next().value ?? null;
    }
  }

  private checkHead(head: SignedHead, chain: Chain, what: HeadQueue["what"]): void {
    this.heads += 1;
    const { tenant, sequence, keyId } = head;
    const words = what === "head" ? "the signed head" : "the anchor";
    const found = (code: FindingCode, detail: string): void => this.note({ code, tenant, sequence, detail });
    const check = this.checks.get(keyId);
    if (check === undefined)
      return found("key_unknown", `${words} of receipt ${sequence} is signed by ${keyId}, an unknown key`);
    if (!check(headText(head), head.signature)) {
      return found("signature_wrong", `the signature of ${words} of receipt ${sequence} is wrong`);
    }
    this.goodKeys.add(keyId);
    const detail = `${words} of receipt ${sequence} was signed for another hash: receipts up to there were replaced`;
    if (sequence !== chain.sequence || head.hash !== chain.hash) found("head_mismatch", detail);
  }

  /** What was signed must exist. */
  private checkEnd(chain: Chain): void {
    if (chain.isBroken) return;
    for (const { next, what } of chain.heads) {
      if (next === null) continue;
      const words = what === "head" ? "a signed head" : "the anchor";
      const detail = `the ledger ends with receipt ${chain.sequence}, but ${words} says that there were ${next.sequence}`;
      this.breakChain(chain, "ledger_cut", detail);
      return;
    }
  }

  private breakChain(chain: Chain, code: FindingCode, detail: string): void {
    chain.isBroken = true;
    this.note({ code, tenant: chain.tenant, sequence: chain.sequence + 1, detail });
  }

  private chainOf(tenant: string): Chain {
    if (this.last?.tenant === tenant) return this.last;
    const known = this.chains.get(tenant) ?? this.beginChain(tenant);
    this.last = known;
    return known;
  }

  private beginChain(tenant: string): Chain {
    const { heads, anchors = [] } = this.options;
    const own = anchors.filter((anchor) => anchor.tenant === tenant).toSorted((a, b) => a.sequence - b.sequence);
    const queues = [queueOf(heads?.get(tenant) ?? [], "head"), queueOf(own, "anchor")];
    const chain: Chain = { tenant, sequence: 0, hash: genesisHash, isBroken: false, heads: queues };
    this.chains.set(tenant, chain);
    // An anchor may have been taken before the first receipt.
    for (const queue of queues) this.meetHeads(chain, queue);
    return chain;
  }
}

function queueOf(heads: Iterable<SignedHead>, what: HeadQueue["what"]): HeadQueue {
  const rest = heads[Symbol.iterator]();
  return { rest, next: rest.next().value ?? null, what };
}

function missing(first: number, after: number): string {
  const which = after - first === 1 ? `receipt ${first} is` : `receipts ${first} to ${after - 1} are`;
  return `${which} missing: receipt ${after} comes next`;
}
