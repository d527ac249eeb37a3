/** Leases that are held for as long as their owner likes, rather than around one piece of work. */
import type { LiveLease } from "./live-lease.ts";
import type { Held, WithLeaseOptions } from "./with-lease.ts";

export type HoldOptions = Omit<WithLeaseOptions, "retryLost">;

export interface Hold extends Omit<Held, "attempt"> {
  /** The only one, or the first of the manifest. */
  readonly lease: LiveLease;
  /** Gives them back; settles when the server has them. Once they are lost there is nothing to give back. */
  release(): Promise<void>;
}

/** `work` runs a body under leases; this one lasts until it is released or its signal fires. */
export function holdUntilReleased(work: (body: (held: Held) => Promise<void>) => Promise<void>): Promise<Hold> {
  return new Promise((resolve, reject) => {
    const ended = work(async (held) => {
      await new Promise<void>((finish) => {
        held.signal.addEventListener("abort", () => finish(), { once: true });
        const release = async (): Promise<void> => {
          finish();
          await over;
        };
        resolve(holdOf(held, release));
      });
    });
    // Before it is held, a failure is the caller's; afterwards the leases' signal has fired already.
    const over = ended.catch(() => undefined);
    ended.catch(reject);
  });
}

function holdOf(held: Held, release: () => Promise<void>): Hold {
  const [first] = held.leases;
  if (first === undefined) throw new TypeError("a manifest that is granted has leases");
  const lease = held.leaseOf(first.resource);
  return {
    ...held,
    // A getter: what is held changes with every renewal.
    get leases() {
      return held.leases;
    },
    lease,
    release,
  };
}
