/**
 * The keys of one cell. It is given keys that were derived for it alone, and derives those of its tenants itself: so it
 * mints and checks without asking (G11), and what is stolen from it opens no other cell.
 */
import { hkdfSync } from "node:crypto";
import type { SigningKey, SigningKeys } from "../mint.ts";
import { type HmacKey, hmacKey } from "../sha256.ts";

/** One key of a cell, as it is handed over when the cell enrols. */
export interface CellKey {
  readonly id: string;
  readonly key: Uint8Array;
  /** From then on nothing made with it is taken; null for the present one. */
  readonly retiresAt: number | null;
}

export const keyBytes = 32;
/** Tenants are few; this only bounds what a flood of made-up names can fill. */
const tenantsRememberedMax = 10_000;

export class CellKeys implements SigningKeys {
  readonly cell: string;
  #keys: readonly CellKey[] = [];
  readonly #derived = new Map<string, HmacKey>();

  constructor(cell: string, keys: readonly CellKey[]) {
    this.cell = cell;
    this.install(keys);
  }

  /** After a rotation. What it no longer names is void at once. */
  install(keys: readonly CellKey[]): void {
    if (!keys.some(({ retiresAt }) => retiresAt === null)) throw new Error("None of them is the present key.");
    this.#keys = keys;
    this.#derived.clear();
  }

  current(tenant: string, cell: string): SigningKey {
    const key = this.#keys.findLast(({ retiresAt }) => retiresAt === null);
    if (key === undefined || cell !== this.cell) throw new Error(`This cell has no key of ${cell}.`);
    return { keyId: key.id, key: this.#derive(key, tenant) };
  }

  find(keyId: string, tenant: string, cell: string, now: number): HmacKey | null {
    if (cell !== this.cell) return null;
    const key = this.#keys.find(({ id }) => id === keyId);
    if (key === undefined || (key.retiresAt !== null && now >= key.retiresAt)) return null;
    return this.#derive(key, tenant);
  }

  #derive(key: CellKey, tenant: string): HmacKey {
    const name = `${key.id}/${tenant}`;
    const known = this.#derived.get(name);
    if (known !== undefined) return known;
    if (this.#derived.size >= tenantsRememberedMax) this.#derived.clear();
    const derived = hmacKey(deriveKey(key.key, "tenant", tenant));
    this.#derived.set(name, derived);
    return derived;
  }
}

/** HKDF-SHA256. The purpose is part of what is derived, so that no key of one kind can be one of another. */
export function deriveKey(from: Uint8Array, purpose: "cell" | "tenant" | "id", name: string): Uint8Array {
  const info = `${purpose}:${name}`;
  return new Uint8Array(hkdfSync("sha256", from, "leasehold token v1", info, keyBytes));
}
