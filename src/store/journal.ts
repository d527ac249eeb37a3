/**
 * The journal: what is committed is durable when its block is in one of these two files and synced. The writer thread
 * folds blocks into the tables later, many at once; a file is written again from its beginning when all of it is folded.
 * The files have their full size before they are used: to overwrite takes about half the time of an append, because the
 * file system has nothing of its own to store.
 *
 *   commit ──► file 0 │▓▓▓▓▓▓▓▓▓▒▒▒│   ▓ folded   ▒ only here       full: the other one, once that is folded
 *              file 1 │▓▓▓▓        │
 */
import { closeSync, fdatasync, fdatasyncSync, fstatSync, openSync, writeSync } from "node:fs";
import { StoreFault, staleEpoch } from "./faults.ts";
import type { JournalPair } from "./journal-files.ts";

/** A file that has this much is left for the other one. A larger batch fits too: the file grows. */
const fileBytesAim = 8 * 1024 * 1024;
const growBytes = 1024 * 1024;
/** What is not folded is folded after this time, or when it has this size. */
const foldAfterMs = 100;
const foldBytesAim = 4 * 1024 * 1024;
/**
 * A disk that confirms within this time is waited for on this thread: the way to the thread pool and back takes as long
 * (decision 0047). After a slower one the next commits are synced in the pool, so that a slow disk does not stop the loop:
 * a few at first, and twice as many each time the disk is found to be slow again.
 */
const quickDisk = { quickSyncMs: 1 };
const pooledMin = 8;
const pooledMax = 1024;

/** A part of a file that is not folded yet. */
export interface Extent {
  readonly file: 0 | 1;
  readonly from: number;
  readonly to: number;
}

interface Append extends Pick<Syncing, "resolve" | "reject"> {
  readonly encode: () => Buffer;
}

interface Syncing {
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (fault: unknown) => void;
}

export class Journal {
  readonly #handles: readonly [number, number];
  /** What each file has been written up to. */
  readonly #sizes: [number, number];
  readonly #epoch: number;
  readonly #fold: (extents: readonly Extent[]) => Promise<void>;
  #file: 0 | 1 = 0;
  #offset = 0;
  #unfolded: Extent[] = [];
  #folding: Promise<void> | null = null;
  /** Parts that are being folded. */
  #underWay: readonly Extent[] = [];
  #timer: NodeJS.Timeout | null = null;
  readonly #queue: Append[] = [];
  #isBusy = false;
  readonly #onIdle: (() => void)[] = [];
  readonly #disk: { readonly quickSyncMs: number };
  /** How many of the next commits are synced in the thread pool. */
  #pooled = 0;
  /** How many that will be after the next slow sync. */
  #pooledNext = pooledMin;
  #syncing: Syncing = { bytes: 0, resolve: () => undefined, reject: () => undefined };

  constructor(
    { paths }: JournalPair,
    epoch: number,
    fold: (extents: readonly Extent[]) => Promise<void>,
    disk: { readonly quickSyncMs: number } = quickDisk,
  ) {
    this.#disk = disk;
    this.#handles = [openSync(paths[0], "r+"), openSync(paths[1], "r+")];
    this.#sizes = [fstatSync(this.#handles[0]).size, fstatSync(this.#handles[1]).size];
    this.#epoch = epoch;
    this.#fold = fold;
  }

  /** Durable when it resolves, in the order of the calls. `encode` is called when its turn has come. */
  append(encode: () => Buffer): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#queue.push({ encode, resolve, reject });
    if (!this.#isBusy) this.#next();
    return promise;
  }

  #next(): void {
    const append = this.#queue.shift();
    this.#isBusy = append !== undefined;
    if (append === undefined) {
      for (const resolve of this.#onIdle.splice(0)) resolve();
      return;
    }
    const { encode, resolve, reject } = append;
    try {
      const block = encode();
      if (this.#offset > 0 && this.#offset + block.length > fileBytesAim) {
        const other = this.#file === 0 ? 1 : 0;
        if (this.#needsFold(other)) return this.#retryFolded(append);
        this.#file = other;
        this.#offset = 0;
      }
      this.#checkSeal();
      this.#write(block);
      // Nothing here keeps the batch in memory until the sync is over (decision 0013).
      this.#syncing = { bytes: block.length, resolve, reject };
    } catch (error) {
      reject(explained(error));
      return this.#next();
    }
    this.#sync();
  }

  #sync(): void {
    const handle = this.#handles[this.#file];
    if (this.#pooled > 0) {
      this.#pooled--;
      return fdatasync(handle, this.#synced);
    }
    const began = performance.now();
    let fault: Error | null = null;
    try {
      fdatasyncSync(handle);
    } catch (error) {
      fault = error as Error;
    }
    if (performance.now() - began <= this.#disk.quickSyncMs) this.#pooledNext = pooledMin;
    else {
      this.#pooled = this.#pooledNext;
      this.#pooledNext = Math.min(2 * this.#pooled, pooledMax);
    }
    this.#synced(fault);
  }

  /** Both files are full. */
  #retryFolded(append: Append): void {
    this.#queue.unshift(append);
    const next = (): void => this.#next();
    this.folded().then(next, (fault: unknown) => {
      this.#queue.shift();
      append.reject(fault);
      next();
    });
  }

  readonly #synced = (error: Error | null): void => {
    const { bytes, resolve, reject } = this.#syncing;
    try {
      if (error !== null) throw notConfirmed(error);
      this.#checkSeal();
      this.#note(bytes);
      resolve();
    } catch (fault) {
      reject(explained(fault));
    }
    this.#next();
  };

  #write(block: Buffer): void {
    const handle = this.#handles[this.#file];
    for (let done = 0; done < block.length; ) {
      done += writeSync(handle, block, done, block.length - done, this.#offset + done);
    }
    const end = this.#offset + block.length;
    if (end > this.#sizes[this.#file]) this.#grow(handle, end);
  }

  /** By more than is needed, so that the next commits overwrite again. */
  #grow(handle: number, end: number): void {
    const zeros = Buffer.alloc(Math.max(0, Math.min(growBytes, fileBytesAim - end)));
    for (let done = 0; done < zeros.length; ) done += writeSync(handle, zeros, done, zeros.length - done, end + done);
    this.#sizes[this.#file] = end + zeros.length;
  }

  /** A server that took over has sealed our files before it read them: nothing of ours counts from then on. */
  #checkSeal(): void {
    // Their owner may not write them any more.
    if ((fstatSync(this.#handles[this.#file]).mode & 0o200) === 0) throw staleEpoch(this.#epoch);
  }

  #note(bytes: number): void {
    const last = this.#unfolded.at(-1);
    const from = this.#offset;
    this.#offset += bytes;
    const to = this.#offset;
    if (last?.file === this.#file && last.to === from) this.#unfolded[this.#unfolded.length - 1] = { ...last, to };
    else this.#unfolded.push({ file: this.#file, from, to });
    if (this.#folding !== null) return;
    if (this.#unfolded.reduce((sum, extent) => sum + extent.to - extent.from, 0) >= foldBytesAim) this.#beginFold();
    else this.#timer ??= setTimeout(() => this.#beginFold(), foldAfterMs).unref();
  }

  #needsFold(file: 0 | 1): boolean {
    return (
      this.#unfolded.some((extent) => extent.file === file) || this.#underWay.some((extent) => extent.file === file)
    );
  }

  /** Resolves when everything that was appended before is in the tables. */
  async folded(): Promise<void> {
    while (this.#folding !== null || this.#unfolded.length > 0) {
      const isAll = this.#folding === null;
      await (this.#folding ?? this.#beginFold());
      if (isAll) return;
    }
  }

  #beginFold(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#folding !== null) return this.#folding;
    if (this.#unfolded.length === 0) return Promise.resolve();
    this.#underWay = this.#unfolded;
    this.#unfolded = [];
    const folding = this.#fold(this.#underWay).finally(() => {
      this.#folding = null;
      this.#underWay = [];
      if (this.#unfolded.length > 0) this.#timer ??= setTimeout(() => this.#beginFold(), foldAfterMs).unref();
    });
    // A failure is the store's to note; those that wait for the fold get it too.
    folding.catch(() => undefined);
    this.#folding = folding;
    return folding;
  }

  /** Resolves when no append is under way. */
  async settled(): Promise<void> {
    while (this.#isBusy) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** What is not folded stays in the files, and the next opener folds it. */
  async close(): Promise<void> {
    await this.settled();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const handle of this.#handles) closeSync(handle);
  }
}

function notConfirmed(cause: Error): StoreFault {
  return new StoreFault(`commit failed: the disk did not confirm the write (fsync failed) (${cause.message})`, {
    cause,
  });
}

function explained(error: unknown): unknown {
  if (!(error instanceof Error && "syscall" in error && "code" in error)) return error;
  const what = error.code === "ENOSPC" ? "the disk is full" : "reading or writing the disk failed";
  return new StoreFault(`commit failed: ${what} (${error.message})`, { cause: error });
}
