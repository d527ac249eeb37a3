/**
 * `memory`: a region of the cell's memory, read and written by offset. Leases that are live together share it; when the
 * last one has ended it is zeroed, and read again to see that it is (G7).
 *
 *   GET /?offset=n&length=m    bytes (or Range: bytes=a-b)
 *   PUT /?offset=n             writes the body there
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Binding } from "../binding.ts";
import type { ProbeResult } from "../driver.ts";
import type { Fields } from "../fields.ts";
import { readListening } from "../listening.ts";
import { AreaDriver, type AreaOptions } from "./area-driver.ts";
import { RangeArea, type Store } from "./file-areas.ts";

interface MemoryOptions extends AreaOptions {
  readonly bytes: number;
}

const bytesMax = 2 ** 36;

export function readMemoryOptions(fields: Fields): MemoryOptions {
  const bytes = fields.integer("bytes", [1, bytesMax], null);
  if (bytes === null && fields.faults.length === 0) fields.fault("bytes", "is missing; say how many bytes are leased");
  return { bytes: bytes ?? 1, readOnly: fields.flag("read_only"), listening: readListening(fields) };
}

export class MemoryDriver extends AreaDriver<MemoryOptions> {
  /** Allocated with the first start, so that a cell that has not enough says so then. */
  private region: MemoryRegion | null = null;
  private readonly users = new Set<Binding>();
  private wiping: Promise<void> | null = null;
  protected readonly area = new RangeArea(async () => this.regionNow(), { from: 0, length: this.options.bytes });

  protected async check(): Promise<void> {
    this.region ??= new MemoryRegion(this.options.bytes);
  }

  override async bind(binding: Binding): Promise<string> {
    await this.wiping;
    this.users.add(binding);
    return await super.bind(binding);
  }

  override async teardown(binding: Binding, signal: AbortSignal): Promise<void> {
    await binding.whenIdle();
    this.users.delete(binding);
    if (this.users.size > 0) return;
    // A lease that is bound meanwhile waits until the region was seen clean, and writes only then.
    this.wiping ??= this.wipe(signal)
      .then(() => this.requireZero(signal))
      .finally(() => {
        this.wiping = null;
      });
    await this.wiping;
  }

  override async probe(signal: AbortSignal): Promise<ProbeResult> {
    const seen = await super.probe(signal);
    if (!seen.clean) return seen;
    await this.requireZero(signal);
    return { clean: true, detail: "every byte is zero, and nothing is under way" };
  }

  override async reset(signal: AbortSignal): Promise<void> {
    await super.reset(signal);
    this.users.clear();
    await this.wipe(signal);
  }

  protected wipe(signal: AbortSignal): Promise<void> {
    return this.regionNow().zero(signal);
  }

  private async requireZero(signal: AbortSignal): Promise<void> {
    const at = await this.regionNow().firstNonZero(signal);
    if (at !== null) throw new Error(`the memory was not zeroed: byte ${at} is not 0`);
  }

  private regionNow(): MemoryRegion {
    if (this.region === null) throw new Error("the memory was not allocated");
    return this.region;
  }
}

/** Between slices of this size others have a turn. */
const sliceBytes = 4 * 2 ** 20;
const zeros = Buffer.alloc(sliceBytes);

class MemoryRegion implements Store {
  readonly mayGrow = false;
  private readonly bytes: Buffer;

  constructor(length: number) {
    // The system gives the pages when they are first written to.
    this.bytes = Buffer.alloc(length);
  }

  async sizeUpTo(end: number): Promise<number> {
    return Math.min(this.bytes.length, end);
  }

  async read(into: Buffer, at: number, length: number, position: number): Promise<{ bytesRead: number }> {
    return { bytesRead: this.bytes.copy(into, at, position, position + length) };
  }

  async write(from: Buffer, at: number, length: number, position: number): Promise<{ bytesWritten: number }> {
    return { bytesWritten: from.copy(this.bytes, position, at, at + length) };
  }

  /** What is zero already is not written to, so that memory which was never used stays unused. */
  async zero(signal: AbortSignal): Promise<void> {
    for await (const { slice } of this.slices(signal)) if (!isZero(slice)) slice.fill(0);
  }

  async firstNonZero(signal: AbortSignal): Promise<number | null> {
    for await (const { slice, from } of this.slices(signal))
      if (!isZero(slice)) return from + slice.findIndex((byte) => byte !== 0);
    return null;
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  private async *slices(signal: AbortSignal): AsyncGenerator<{ readonly slice: Buffer; readonly from: number }> {
    for (let from = 0; from < this.bytes.length; from += sliceBytes) {
      signal.throwIfAborted();
      yield { slice: this.bytes.subarray(from, from + sliceBytes), from };
      await nextTurn();
    }
  }
}

function isZero(slice: Buffer): boolean {
  return slice.equals(slice.length === zeros.length ? zeros : zeros.subarray(0, slice.length));
}
