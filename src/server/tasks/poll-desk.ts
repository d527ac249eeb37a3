/**
 * Polls for work, and those that are held until there is some (T1, `hold_ms`). A held poll costs an entry in a set and a
 * timer. When a task becomes ready, one worker that can do it is woken, and its poll is put to the kernel again; if
 * that brings nothing, because another was quicker, it goes on waiting.
 *
 *   asking ──► (nothing there) ──► waiting ──► (work came) ──► asking …       ──► over: answered, or the client is gone
 */
import type { Engine } from "../../engine/engine.ts";
import { drawEntropy } from "../../engine/entropy.ts";
import type { Decided } from "../../engine/terms.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Offer } from "../../kernel/contract/replies.ts";
import type { PollTasks } from "../../kernel/contract/task-commands.ts";
import type { ReadyTask } from "../../kernel/kernel.ts";
import { type Room, Rooms } from "./poll-rooms.ts";

/** A search that is cut short goes on in the next turn, up to so often for one answer. */
const roundsMax = 10_000;
/** Somebody who was woken for nothing passes the word on, so often. */
const passesMax = 2;

interface Poll {
  readonly command: PollTasks;
  readonly workerId: string;
  readonly rooms: Rooms<Poll>;
  readonly room: Room<Poll>;
  readonly until: Millis;
  readonly answer: (decided: Decided) => void;
  readonly failed: (fault: Error) => void;
  health: number;
  state: "asking" | "waiting" | "over";
  /** The client is gone, or the hold is over: what comes is the last word. */
  isGone: boolean;
  isLast: boolean;
  /** How much work the room had missed when it was last asked for. */
  missed: number;
  rounds: number;
  woken: { readonly ready: ReadyTask; readonly passes: number } | null;
  timer: NodeJS.Timeout | null;
}

export interface PollDesk {
  /** Answers once, when there is work or the hold is over. Returns how to drop it when its client goes away. */
  ask(command: PollTasks, holdMs: number, answer: Poll["answer"], failed: Poll["failed"]): () => void;
  /** Polls that are held at the moment. */
  readonly size: number;
  /** The server is going down: everybody is told that there is nothing. */
  wakeAll(): void;
}

export function createPollDesk(engine: Engine): PollDesk {
  const tenants = new Map<string, Rooms<Poll>>();
  let size = 0;

  engine.onReady((ready) => {
    if (tenants.size === 0) return;
    const woken: Poll[] = [];
    for (const task of ready) {
      const poll = findFor(task);
      if (poll === null) continue;
      poll.woken = { ready: task, passes: passesMax };
      woken.push(poll);
    }
    // At once: the engine tells before it sends a batch off, so that creation and offer share one commit.
    for (const poll of woken) submit(poll);
  });
  // What became ready in a commit of unknown outcome was told to nobody (S2), so everybody asks again.
  engine.onRecovery(() => {
    for (const rooms of tenants.values()) for (const poll of [...rooms.all()]) if (takeOut(poll)) submit(poll);
  });

  /** Takes a waiting poll out for the task; null where nobody who could do it waits. */
  function findFor(task: ReadyTask): Poll | null {
    const rooms = tenants.get(task.tenant);
    if (rooms === undefined) return null;
    const able = rooms.roomsFor(task);
    const poll = rooms.find(task, able);
    if (poll !== undefined && takeOut(poll)) return poll;
    for (const room of able) room.missed++;
    return null;
  }

  function takeOut(poll: Poll): boolean {
    if (poll.state !== "waiting") return false;
    poll.rooms.take(poll, poll.room);
    poll.state = "asking";
    size--;
    return true;
  }

  function submit(poll: Poll): void {
    if (poll.isGone) return end(poll);
    poll.missed = poll.room.missed;
    engine.submit(
      { ...poll.command, entropy: drawEntropy() },
      (decided) => settle(poll, decided),
      (fault) => {
        end(poll);
        poll.failed(fault);
      },
    );
  }

  function settle(poll: Poll, decided: Decided): void {
    const { reply } = decided;
    if (poll.isGone) {
      end(poll);
      if (reply.type === "offers") giveBack(engine, poll.command, reply.offers);
      return;
    }
    if (reply.type !== "offers" || reply.offers.length > 0) return answer(poll, decided);
    if (reply.more && ++poll.rounds < roundsMax) {
      setImmediate(() => submit(poll));
      return;
    }
    passOn(poll);
    if (poll.isLast || poll.until <= engine.now()) return answer(poll, decided);
    if (poll.missed !== poll.room.missed) return submit(poll);
    wait(poll);
  }

  function wait(poll: Poll): void {
    poll.state = "waiting";
    poll.rounds = 0;
    poll.health = healthOf(engine, poll.command);
    poll.rooms.wait(poll, poll.room);
    size++;
    poll.timer ??= setTimeout(() => finish(poll), Math.max(0, poll.until - engine.now()));
  }

  /** The end of a hold. */
  function finish(poll: Poll): void {
    poll.isLast = true;
    if (takeOut(poll)) answer(poll, { reply: nothing, now: engine.now(), receipts: [] });
  }

  /** Another may be able to take what this one could not: a second attempt at a task, for instance (T8). */
  function passOn(poll: Poll): void {
    const { woken } = poll;
    poll.woken = null;
    if (woken === null || woken.passes === 0) return;
    const next = findFor({ ...woken.ready, lastWorker: null });
    if (next === null) return;
    next.woken = { ready: woken.ready, passes: woken.passes - 1 };
    submit(next);
  }

  function answer(poll: Poll, decided: Decided): void {
    end(poll);
    poll.answer(decided);
  }

  function end(poll: Poll): void {
    if (poll.state === "over") return;
    poll.state = "over";
    if (poll.timer !== null) clearTimeout(poll.timer);
    poll.rooms.leave(poll.room);
    if (poll.rooms.isUnused) tenants.delete(poll.command.tenant);
  }

  function drop(poll: Poll): void {
    if (poll.state === "over") return;
    poll.isGone = true;
    if (takeOut(poll)) end(poll);
  }

  return {
    get size() {
      return size;
    },
    ask(command, holdMs, answered, failed) {
      let rooms = tenants.get(command.tenant);
      if (rooms === undefined) {
        rooms = new Rooms<Poll>();
        tenants.set(command.tenant, rooms);
      }
      const poll: Poll = {
        command,
        workerId: command.workerId,
        rooms,
        room: rooms.enter(capabilitiesOf(engine, command), command.acceptTypes ?? null),
        until: holdMs === 0 ? 0 : engine.now() + holdMs,
        answer: answered,
        failed,
        health: 1,
        state: "asking",
        isGone: false,
        isLast: false,
        missed: 0,
        rounds: 0,
        woken: null,
        timer: null,
      };
      submit(poll);
      return () => drop(poll);
    },
    wakeAll() {
      for (const rooms of [...tenants.values()]) for (const poll of [...rooms.all()]) finish(poll);
    },
  };
}

const nothing = { type: "offers", offers: [], more: false } as const;

/** What it says now, or said before (T9). */
function capabilitiesOf(engine: Engine, { tenant, workerId, capabilities }: PollTasks): readonly string[] {
  if (capabilities !== null) return capabilities;
  return engine.peek(({ tenants }) => tenants.get(tenant)?.book.workers.get(workerId)?.record.capabilities ?? []);
}

function healthOf(engine: Engine, { tenant, workerId }: PollTasks): number {
  return engine.peek(({ tenants }) => tenants.get(tenant)?.book.workers.get(workerId)?.record.health ?? 1);
}

/**
 * Nobody was there to take the offers, so others need not wait for their end (T2). Who gave a request_id can still ask
 * for them (T1), and what was reclaimed had been accepted before.
 */
function giveBack(engine: Engine, { tenant, actor, requestKey, reclaim }: PollTasks, offers: readonly Offer[]): void {
  if (requestKey !== null || reclaim) return;
  for (const { lease } of offers) {
    const command = { type: "release_task", tenant, actor, leaseId: lease.id, entropy: drawEntropy() } as const;
    engine.submit(command, ignore, ignore);
  }
}

function ignore(): void {
  // Its lease runs out by itself.
}
