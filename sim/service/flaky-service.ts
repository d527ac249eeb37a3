/**
 * The real engine and the server's real services, over a disk in memory. Commits fail, with their batch stored or lost;
 * the process is killed during a commit, or restarted in order. Callers then get no answer, or that the outcome is
 * unknown (S2).
 */

import { Engine } from "../../src/engine/engine.ts";
import type { Decision } from "../../src/engine/engine-types.ts";
import { completeReply, needsHistory } from "../../src/engine/history.ts";
import { type Command, unstamped } from "../../src/kernel/contract/commands.ts";
import type { Reply } from "../../src/kernel/contract/replies.ts";
import type { CreateTask, ReceiptInput } from "../../src/kernel/contract/task-commands.ts";
import type { Receipt } from "../../src/kernel/contract/task-records.ts";
import type { State } from "../../src/kernel/kernel.ts";
import { throwAtChange } from "../../src/kernel/testing/planted-faults.ts";
import { createLedgerKey, type LedgerKey } from "../../src/ledger/keys.ts";
import { ReceiptSubmission } from "../../src/server/receipts/receipts.ts";
import { createTask, type TaskKeys, taskKeysOf } from "../../src/server/tasks/creating-tasks.ts";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { type Counters, count } from "../counters.ts";
import type { Random } from "../random.ts";
import { operator } from "../world.ts";
import type { VirtualTime } from "./virtual-time.ts";

export const tenant = "default";

type WithoutAsked<C> = C extends Command ? Omit<C, "tenant" | "actor" | "entropy"> : never;
/** A command of this tenant's operator: permissions are not tested here. */
export type Wanted = WithoutAsked<Exclude<Command, { type: "submit_receipt" | "create_task" }>>;

export type ReceiptAnswer =
  | { readonly type: "stored"; readonly receipt: Receipt; readonly created: boolean }
  | { readonly type: "refused"; readonly code: string };

/** The outcome is unknown to the caller. */
export class Unknown extends Error {
  override readonly name = "Unknown";
}

export class FlakyService {
  readonly disk = createMemoryDisk();
  readonly keys: LedgerKey[] = [createLedgerKey()];
  /** Requests in flight: time stands still while there are any. */
  underWay = 0;
  private engine: Engine;
  private receipts: ReceiptSubmission;
  private taskKeys: TaskKeys;
  private life = 0;
  private readonly time: VirtualTime;
  private readonly ids: Random;
  private readonly counters: Counters;

  constructor(time: VirtualTime, ids: Random, counters: Counters) {
    this.time = time;
    this.ids = ids;
    this.counters = counters;
    this.engine = this.createEngine();
    this.receipts = new ReceiptSubmission(this.engine);
    this.taskKeys = taskKeysOf(this.engine);
  }

  private createEngine(): Engine {
    const nothing = (): void => undefined;
    return new Engine({
      store: createMemoryStore(this.disk),
      encodeEvent: ({ type }) => `{"type":"${type}"}`,
      log: { info: nothing, warn: nothing, error: nothing },
      time: this.time.sources,
      drawEntropy: () => [this.ids.bits(), this.ids.bits()],
      ledgerKey: () => this.keys.at(-1) ?? createLedgerKey(),
    });
  }

  start(): Promise<void> {
    return this.engine.start();
  }

  get isServing(): boolean {
    return this.engine.isServing;
  }

  /** The next commit fails, with its batch stored or lost; callers do not learn which. */
  failNextCommit(how: "lost" | "stored"): void {
    this.disk.failNextCommit = how;
    count(this.counters, `service: commit fails, ${how}`);
  }

  /** The kernel throws at the nth change from now on, in the middle of a step (S2). */
  throwAtChange(nth: number): void {
    this.engine.peek((state) => throwAtChange(state, nth));
    count(this.counters, "service: a step throws");
  }

  /** Like kill -9: the batch under way is stored or not, and nobody is answered. */
  async kill(): Promise<void> {
    const old = this.engine;
    this.life++;
    this.disk.owner = null;
    this.disk.failNextCommit = null;
    await this.begin();
    // The old engine can no longer write; this only stops its timers.
    await old.close();
    count(this.counters, "service: killed");
  }

  async restart(): Promise<void> {
    this.disk.failNextCommit = null;
    await this.engine.close();
    this.life++;
    if (this.keys.length < 3) this.keys.push(createLedgerKey());
    await this.begin();
    count(this.counters, "service: restarted");
  }

  private async begin(): Promise<void> {
    this.engine = this.createEngine();
    this.receipts = new ReceiptSubmission(this.engine);
    this.taskKeys = taskKeysOf(this.engine);
    await this.engine.start();
  }

  close(): Promise<void> {
    return this.engine.close();
  }

  ask<T>(look: (state: State) => T): Promise<T> {
    return this.engine.ask(look);
  }

  command(wanted: Wanted): Promise<Reply> {
    const { engine } = this;
    const command = { ...wanted, tenant, actor: operator, entropy: unstamped } as Command;
    return this.follow(async () => {
      const { reply } = await engine.command(command);
      return needsHistory(reply) ? completeReply(engine.store, command, reply) : reply;
    });
  }

  create(task: CreateTask["task"]): Promise<Reply> {
    const { engine, taskKeys } = this;
    const asked = { tenant, actor: operator, entropy: unstamped, endedDependencies: null };
    const command: CreateTask = { ...asked, type: "create_task", task };
    return this.follow(async () => {
      const decided = await new Promise<Decision>((resolve, reject) =>
        createTask({ engine, taskKeys }, command, { encode: (found) => found, send: resolve, fail: reject }),
      );
      return decided.reply;
    });
  }

  receipt(receipt: ReceiptInput): Promise<ReceiptAnswer> {
    const { receipts } = this;
    return this.follow(
      () =>
        new Promise<ReceiptAnswer>((resolve, reject) =>
          receipts.submit({ tenant, actor: operator }, [receipt], {
            encode: ({ receipt: stored }, created) => ({ type: "stored" as const, receipt: stored, created }),
            stored: (_, answer) => resolve(answer),
            refused: (_, { code }) => resolve({ type: "refused", code }),
            answered: (_, answer) => reject(new Error(`a receipt was answered with ${answer.status}`)),
            failed: reject,
          }),
        ),
    );
  }

  /** A dead process answers nobody, whatever it had decided. */
  private async follow<T>(request: () => Promise<T>): Promise<T> {
    const { life } = this;
    this.underWay++;
    try {
      const answer = await request();
      if (life !== this.life) throw new Unknown("the connection broke");
      return answer;
    } catch (fault) {
      if (fault instanceof Unknown) throw fault;
      const isExpected = fault instanceof Error && /database|shutting|store/i.test(`${fault.name} ${fault.message}`);
      if (!isExpected) throw fault;
      throw new Unknown("the service was not available", { cause: fault });
    } finally {
      this.underWay--;
    }
  }
}
