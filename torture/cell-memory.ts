/**
 * Memory behind a cell. Nothing stands behind it that could record its uses, so its holders are its checker: each writes its
 * lease's id through its token and reads all of it back.
 *
 *   a new holder finds zeros (G7)
 *   a holder finds zeros and its own writes, never another's: what a zombie sends after its end does not arrive
 *   a write that was confirmed is there, unless the cell was killed since
 *   a write that was sent after the lease's end is not confirmed
 *
 * One more write crosses the end on purpose: its second half is sent late.
 */
import { request as askHttp } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../sim/random.ts";
import type { CellChecker } from "./cell-checker.ts";
import type { Service } from "./cell-services.ts";
import { bearer, type Lease, type Use } from "./cell-users.ts";

const slotBytes = 32;
const slotCount = 128;
/** The first two are for the write that is sent in halves. */
const firstSlot = 2;
const bytes = slotBytes * slotCount;
const everyMs = 15;
const answerMsMax = 1_000;

/** What one holder knows of a slot, as the numbers of its writes. */
interface Slot {
  sent: number;
  confirmed: number;
  /** How often the cell had been killed by then. */
  kills: number;
}

export class MemoryService implements Service {
  readonly resource: string;
  readonly entry: object;
  private readonly checker: CellChecker;
  private readonly random: Random;
  /** How often the cell was killed, and its memory with it. */
  private kills = 0;

  constructor(cell: string, checker: CellChecker, random: Random) {
    this.resource = `MEM:/torture/${cell}`;
    this.entry = { resource: this.resource, driver: "memory", options: { bytes } };
    this.checker = checker;
    this.random = random;
  }

  /** The cell was killed. */
  forget(): void {
    this.kills++;
  }

  inside(): ReadonlySet<string> {
    return new Set();
  }

  collect(): void {}

  close(): void {}

  async use(use: Use): Promise<void> {
    const { present, isUsing } = use;
    await this.isEmpty(use);
    const slow = this.writeInHalves(present());
    const slots = Array.from({ length: slotCount }, (): Slot => ({ sent: 0, confirmed: 0, kills: 0 }));
    for (let sequence = 1; isUsing(); sequence++) {
      await this.write(use, slots, sequence);
      await this.readBack(use, slots);
      await sleep(everyMs);
    }
    await slow;
  }

  private async isEmpty(use: Use): Promise<void> {
    const found = await this.read(use);
    const used = found?.findIndex((byte) => byte !== 0) ?? -1;
    if (used >= 0)
      this.violated(use.present(), `was granted with ${textOf(found, Math.floor(used / slotBytes))} in it`);
  }

  private async write({ present, wasRefused }: Use, slots: readonly Slot[], sequence: number): Promise<void> {
    const lease = present();
    const at = firstSlot + (sequence % (slotCount - firstSlot));
    const slot = slots[at];
    if (slot === undefined) throw new RangeError(`there is no slot ${at}`);
    slot.sent = sequence;
    const sentAt = Date.now();
    const url = `${lease.coordinate}/?offset=${at * slotBytes}`;
    const body = `${lease.id} ${sequence}`.padEnd(slotBytes);
    const { kills } = this;
    const init = { method: "PUT", headers: bearer(lease), body, signal: AbortSignal.timeout(answerMsMax) };
    const answer = await fetch(url, init).catch(() => null);
    await answer?.arrayBuffer().catch(() => undefined);
    if (answer === null) return;
    if (!answer.ok) return void wasRefused();
    slot.confirmed = sequence;
    slot.kills = kills;
    this.checker.did({ kind: "memory", resource: this.resource, lease: lease.id, at: sentAt });
  }

  private async readBack(use: Use, slots: readonly Slot[]): Promise<void> {
    const found = await this.read(use);
    if (found === null) return;
    const lease = use.present();
    for (const [at, { confirmed, sent, kills }] of slots.entries()) {
      const text = textOf(found, at);
      const [id = "", sequence = "0"] = text.split(" ");
      const isLost = Number(sequence) < confirmed && kills === this.kills;
      // The first is enough.
      if (id !== "" && id !== lease.id) return this.violated(lease, `found ${text} in slot ${at}`);
      if (at >= firstSlot && (isLost || Number(sequence) > sent)) {
        return this.violated(lease, `wrote ${confirmed} into slot ${at}, and found ${sequence}`);
      }
    }
  }

  /** null: refused, or no answer. */
  private async read({ present, wasRefused }: Use): Promise<Buffer | null> {
    const lease = present();
    const sentAt = Date.now();
    const init = { headers: bearer(lease), signal: AbortSignal.timeout(answerMsMax) };
    try {
      const answer = await fetch(lease.coordinate, init);
      const found = Buffer.from(await answer.arrayBuffer());
      if (!answer.ok) {
        wasRefused();
        return null;
      }
      this.checker.did({ kind: "memory", resource: this.resource, lease: lease.id, at: sentAt });
      return found;
    } catch {
      return null;
    }
  }

  /** It is confirmed only if the second half was sent before the end. */
  private writeInHalves(lease: Lease): Promise<void> {
    const half = lease.id.padEnd(slotBytes);
    const leftMs = Math.max(0, Date.parse(lease.expires_at) - Date.now());
    const pauseMs = this.random.below(leftMs * 2 + 1);
    return new Promise((resolve) => {
      let sentAt = 0;
      const headers = { ...bearer(lease), "content-length": 2 * slotBytes };
      const asked = askHttp(`${lease.coordinate}/?offset=0`, { method: "PUT", headers, agent: false });
      const timer = setTimeout(() => {
        sentAt = Date.now();
        asked.end(half);
      }, pauseMs);
      const over = setTimeout(() => asked.destroy(), pauseMs + answerMsMax);
      asked.on("error", () => {});
      asked.on("response", (answer) => {
        answer.on("error", () => {}).resume();
        if (answer.statusCode !== 204) return;
        this.checker.did({ kind: "memory", resource: this.resource, lease: lease.id, at: sentAt });
      });
      asked.on("close", () => {
        clearTimeout(timer);
        clearTimeout(over);
        resolve();
      });
      asked.write(half);
    });
  }

  private violated({ id }: Lease, what: string): void {
    this.checker.violations.push(`memory ${this.resource}: ${id} ${what}`);
  }
}

/** What a slot holds; "" where it is all zeros. */
function textOf(found: Buffer | null, slot: number): string {
  const text = found?.toString("latin1", slot * slotBytes, (slot + 1) * slotBytes) ?? "";
  return text.replace(/\0+$/, "").trimEnd();
}
