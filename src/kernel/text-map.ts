/**
 * A map from text to things. The language's own map asks its runtime for the hash of every text that has just come off
 * the wire, which costs more than all else that a small command does; here the hash is computed in place, or taken from
 * the parser, which sees every character anyway. Texts that collide, by chance or by malice, share a map of the
 * language's own, so that the worst case is that one.
 */
export class TextMap<V extends object> {
  private readonly buckets = new Map<number, V | Map<string, V>>();
  private readonly textOf: (value: V) => string;
  private readonly hashOf: (text: string) => number;
  size = 0;

  constructor(textOf: (value: V) => string, hashOf: (text: string) => number) {
    this.textOf = textOf;
    this.hashOf = hashOf;
  }

  get(text: string, hash: number = this.hashOf(text)): V | undefined {
    const bucket = this.buckets.get(hash);
    if (bucket === undefined) return undefined;
    if (bucket instanceof Map) return bucket.get(text);
    return this.textOf(bucket) === text ? bucket : undefined;
  }

  has(text: string): boolean {
    return this.get(text) !== undefined;
  }

  set(text: string, value: V, hash: number = this.hashOf(text)): void {
    const bucket = this.buckets.get(hash);
    if (bucket === undefined) {
      this.buckets.set(hash, value);
      this.size++;
    } else if (bucket instanceof Map) {
      if (!bucket.has(text)) this.size++;
      bucket.set(text, value);
    } else if (this.textOf(bucket) === text) this.buckets.set(hash, value);
    else {
      const shared = new Map([[this.textOf(bucket), bucket]]);
      shared.set(text, value);
      this.buckets.set(hash, shared);
      this.size++;
    }
  }

  delete(text: string, hash: number = this.hashOf(text)): void {
    const bucket = this.buckets.get(hash);
    if (bucket === undefined) return;
    if (bucket instanceof Map) {
      if (!bucket.delete(text)) return;
      if (bucket.size === 0) this.buckets.delete(hash);
    } else if (this.textOf(bucket) !== text) return;
    else this.buckets.delete(hash);
    this.size--;
  }

  *values(): Generator<V> {
    for (const bucket of this.buckets.values()) {
      if (bucket instanceof Map) yield* bucket.values();
      else yield bucket;
    }
  }
}

/** FNV-1a, for texts of any kind. */
export function textHash(text: string): number {
  let hash = hashStart;
  for (let at = 0; at < text.length; at++) hash = hashNext(hash, text.charCodeAt(at));
  return hash;
}

export const hashStart = 0x811c9dc5 | 0;

export function hashNext(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193);
}

/** Ids made by ids.ts end in random characters; those are hash enough. */
export function idHash(id: string): number {
  let hash = hashStart;
  for (let at = 19; at < id.length; at++) hash = hashNext(hash, id.charCodeAt(at));
  return hash;
}
