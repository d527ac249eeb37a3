/**
 * The engine's end of the ledger (R6): where each tenant's chain has come to, in memory and on the disk, and which of it
 * is signed. A receipt is sealed when it is decided, because the next one needs its hash; what was sealed and not stored
 * is forgotten with the rest of memory (S2), and the chain goes on from the disk.
 */
import type { Millis } from "../kernel/contract/records.ts";
import type { Receipt } from "../kernel/contract/task-records.ts";
import { type Head, signHead } from "../ledger/head.ts";
import type { LedgerKey } from "../ledger/keys.ts";
import { genesisHash, type SealedReceipt, seal } from "../ledger/seal.ts";
import type { AuditRow, LedgerHead, SignedHead, Store } from "../store/store.ts";
import { AuditChain } from "./audit-chain.ts";
import { createBatch, toStoreBatch } from "./batch.ts";
import type { EngineLog } from "./engine-types.ts";

/** A head is signed after this many receipts, or when the first of them has waited this long. */
export const headEvery = 1_000;
export const headMs = 10_000;

interface Chain {
  readonly tenant: string;
  sequence: number;
  hash: string;
  durableSequence: number;
  durableHash: string;
  signedSequence: number;
  /** When the first receipt was sealed that no signed head covers. */
  unsignedSince: Millis;
}

/** How far a chain had come when a batch was sent off. */
export interface ChainEnd {
  readonly chain: Chain;
  readonly sequence: number;
  readonly hash: string;
}

export class LedgerChain {
  readonly key: LedgerKey;
  /** The audit log has chains of its own (S7). */
  readonly audits: AuditChain;
  private readonly chains = new Map<string, Chain>();
  /** Chains with receipts that no signed head covers, in the order in which they became so. */
  private readonly unsigned = new Set<Chain>();
  /** Those among them that have grown enough. */
  private readonly grown = new Set<Chain>();
  /** When a head is due next if no receipt comes; infinity: there is none to sign. A field, because each flush reads it. */
  nextHeadAt: Millis = Number.POSITIVE_INFINITY;

  constructor(key: LedgerKey, heads: readonly LedgerHead[], audits: readonly AuditRow[] = []) {
    this.key = key;
    this.audits = new AuditChain(audits);
    for (const { tenant, sequence, hash, signedSequence } of heads) {
      const chain = { tenant, sequence, hash, durableSequence: sequence, durableHash: hash, signedSequence };
      const entry: Chain = { ...chain, unsignedSince: 0 };
      this.chains.set(tenant, entry);
      // The last run ended before it signed them; the next batch does.
      if (signedSequence < sequence) this.unsigned.add(entry);
    }
    this.schedule();
  }

  seal(receipt: Receipt, now: Millis): SealedReceipt {
    const chain = this.chainOf(receipt.tenant);
    const sealed = seal(receipt, chain.hash);
    chain.sequence = receipt.sequence;
    chain.hash = sealed.hash;
    if (!this.unsigned.has(chain)) {
      chain.unsignedSince = now;
      this.unsigned.add(chain);
    }
    if (chain.sequence - chain.signedSequence >= headEvery) this.grown.add(chain);
    this.schedule();
    return sealed;
  }

  /** The heads that a batch takes along: of those chains that have waited long enough, or grown enough. */
  dueHeads(now: Millis): SignedHead[] {
    const heads: SignedHead[] = [];
    for (const chain of this.grown) heads.push(this.signChain(chain, now));
    for (const chain of this.unsigned) {
      if (now - chain.unsignedSince < headMs) break;
      heads.push(this.signChain(chain, now));
    }
    return heads;
  }

  /** All that is not signed yet, when the service ends. */
  lastHeads(now: Millis): SignedHead[] {
    return Array.from(this.unsigned, (chain) => this.signChain(chain, now));
  }

  private schedule(): void {
    this.nextHeadAt = this.grown.size > 0 ? 0 : Number.POSITIVE_INFINITY;
    for (const { unsignedSince } of this.unsigned) {
      this.nextHeadAt = Math.min(this.nextHeadAt, unsignedSince + headMs);
      break;
    }
  }

  /** Where the chains of these receipts have come to with them. */
  ends(receipts: readonly SealedReceipt[]): readonly ChainEnd[] {
    const tenants = new Set<string>();
    for (const { receipt } of receipts) tenants.add(receipt.tenant);
    return Array.from(tenants, (tenant) => {
      const chain = this.chainOf(tenant);
      return { chain, sequence: chain.sequence, hash: chain.hash };
    });
  }

  /** Called when these ends are durable. */
  stored(ends: readonly ChainEnd[]): void {
    for (const { chain, sequence, hash } of ends) {
      chain.durableSequence = sequence;
      chain.durableHash = hash;
    }
  }

  /** Signs the durable head, and not a receipt further (S1). */
  signDurable(tenant: string, now: Millis): SignedHead {
    const chain = this.chains.get(tenant);
    const head: Head = {
      tenant,
      sequence: chain?.durableSequence ?? 0,
      hash: chain?.durableHash ?? genesisHash,
      at: now,
    };
    return signHead(head, this.key);
  }

  private signChain(chain: Chain, now: Millis): SignedHead {
    const { tenant, sequence, hash } = chain;
    chain.signedSequence = sequence;
    this.unsigned.delete(chain);
    this.grown.delete(chain);
    this.schedule();
    return signHead({ tenant, sequence, hash, at: now }, this.key);
  }

  private chainOf(tenant: string): Chain {
    const known = this.chains.get(tenant);
    if (known !== undefined) return known;
    const start = { sequence: 0, hash: genesisHash, durableSequence: 0, durableHash: genesisHash };
    const chain: Chain = { tenant, ...start, signedSequence: 0, unsignedSince: 0 };
    this.chains.set(tenant, chain);
    return chain;
  }
}

/** While the store is away there is no ledger to add to, and nothing is signed. */
export const noLedger = new LedgerChain(
  {
    keyId: "",
    publicKey: "",
    sign: () => {
      throw new Error("There is no ledger to sign: the store is not open.");
    },
  },
  [],
);

/** Nothing is left unsigned by a service that ends in order. */
export async function commitLastHeads(
  ledger: LedgerChain,
  store: Store,
  now: Millis,
  rows: { next: number },
  log: EngineLog,
): Promise<void> {
  const heads = ledger.lastHeads(now);
  if (heads.length === 0) return;
  try {
    await store.commit(toStoreBatch({ ...createBatch(), now }, heads, rows, JSON.stringify));
  } catch (fault) {
    log.warn({ err: fault }, "the last heads of the ledger could not be stored; the next start signs them");
  }
}
