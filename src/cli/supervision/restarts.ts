/**
 * A command that is run again when it dies, as often as its user allows. Its agent's restart is announced, so that what it
 * holds is kept back should a heartbeat be missed meanwhile (L9); before it runs again, VERIFY_ALL tells what is true (L8).
 */
import { backOffMs } from "../../keeper/lease-keeper.ts";
import { type Actor, askAs } from "../../sdk/actor.ts";
import { sleep } from "../../sdk/timing.ts";
import { exitCodes } from "../exit-codes.ts";

const pauseMsBase = 500;
const pauseMsCap = 30_000;
const askMs = 3_000;

export interface RestartOptions {
  readonly max: number;
  /** Fires when a signal is to end this process. */
  readonly stopped: AbortSignal;
  readonly note: (text: string) => void;
}

export class Restarts {
  private readonly options: RestartOptions;
  private used = 0;

  constructor(options: RestartOptions) {
    this.options = options;
  }

  /**
   * DIE inside the command: another `leasehold` in it, as the same agent, met older work. What the command has done so far
   * is rolled back, so all leases are given back before it runs again (W5).
   */
  static isRollBack(code: number): boolean {
    return code === exitCodes.notGranted;
  }

  /** Whether the command may run again after this end. */
  isLeft(code: number): boolean {
    const { max, stopped } = this.options;
    return code !== exitCodes.done && this.used < max && !stopped.aborted;
  }

  /** Pauses, and says whether the command is to run again after this end. */
  async again(code: number, ended?: AbortSignal): Promise<boolean> {
    if (!this.isLeft(code)) return false;
    const { max, stopped, note } = this.options;
    note(`the command has ended with ${code}; restart ${this.used + 1} of ${max}`);
    const pauseMs = backOffMs(this.used++, pauseMsBase, pauseMsCap);
    const signal = ended === undefined ? stopped : AbortSignal.any([stopped, ended]);
    return sleep(pauseMs, signal).then(
      () => true,
      () => false,
    );
  }

  /** Around the pause between two runs under the same leases. A server that is away is not waited for. */
  async announced(actor: Actor, pause: () => Promise<boolean>): Promise<boolean> {
    const ask = (name: "restart_agent" | "verify_all"): Promise<unknown> =>
      askAs(actor, name, { agent_id: actor.agentId }, { timeoutMs: askMs, retries: 1 }).catch(() => undefined);
    await ask("restart_agent");
    try {
      return await pause();
    } finally {
      await ask("verify_all");
    }
  }
}
