/**
 * Polls for work, and those that are held until there is some (T1, `hold_ms`). A held poll costs an entry in a set and a
 * timer. When a task becomes ready, one worker that can do it is woken, and its poll is submitted again; if that brings
 * nothing, because another worker was quicker, it goes on waiting.
 *
 *   asking ──► (nothing there) ──► waiting ──► (a task is ready) ──► asking …     ──► over: answered, or the client is gone
 */
import type { Engine } from "../../engine/engine.ts";
import type { Decision, Outlet } from "../../engine/engine-types.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Offer } from "../../kernel/contract/replies.ts";
import type { PollTasks } from "../../kernel/contract/task-commands.ts";
import type { ReadyTask } from "../../kernel/kernel.ts";
import { findRecord, workPermitOf } from "../../kernel/views.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";
import { isPlace } from "../answering/tenant-use.ts";
import { type PollGroup, PollGroups } from "./poll-groups.ts";

/** A search that is cut short goes on in the next turn, at most this often for one answer. */
const roundsMax = 10_000;
/** How often a wake-up is handed on when the woken worker could not take the task. */
const passesMax = 2;

/** The poll is dropped whenever its client goes away, held or not: an offer that nobody receives is given back (T2). */
export function runPoll({ service, operation, input, command, respond }: RunRequest<PollTasks>): (() => void) | null {
  const holdMs = typeof input["hold_ms"] === "number" ? input["hold_ms"] : 0;
  if (holdMs === 0) return service.polls.add(command, 0, new PollRun(service, operation, command, respond));
  const place = service.uses.enter(command.tenant, "heldMax");
  if (!isPlace(place)) {
    service.counts.refuse(place.code);
    respond(place);
    return null;
  }
  const run = new PollRun(service, operation, command, (answer) => {
    place.leave();
    respond(answer);
  });
  const drop = service.polls.add(command, holdMs, run);
  return () => {
    place.leave();
    drop();
  };
}

class PollRun extends CommandRun<PollTasks> {
  override send({ reply, now }: Decision): void {
    const { counts } = this.service;
    counts.note(reply);
    // T1, L11: what was re-issued has tokens that its cells must know first.
    const isReissued = this.command.reclaim && reply.type === "offers" && reply.offers.length > 0;
    if (!isReissued) return this.offer(reply, now);
    const leases = reply.offers.flatMap((offer) => offer.leases);
    void this.service.cells.awaitAll(leases).then(() => this.offer(reply, now));
  }

  private offer(reply: Decision["reply"], now: Millis): void {
    const { tokens } = this.service;
    this.answer(reply, now, { inList: this.command.maxTasks > 1, tokenOf: tokens.tokenOf });
  }
}

type PollOutlet = Pick<Outlet, "send" | "fail">;

/** All polls that are not answered yet. */
export class Polls {
  readonly engine: Engine;
  private readonly tenants = new Map<string, PollGroups<Poll>>();
  /** Polls that are held at the moment. */
  size = 0;

  constructor(engine: Engine) {
    this.engine = engine;
    engine.onReady((ready) => this.wakeFor(ready));
    // Tasks that became ready in a commit of unknown outcome are never announced (S2), so all ask again.
    engine.onRecovery(() => {
      for (const poll of this.waiting()) if (poll.takeOut()) poll.submit();
    });
  }

  /** Answers once, when there is work or the hold is over. Returns how to drop it when its client goes away. */
  add(command: PollTasks, holdMs: number, outlet: PollOutlet): () => void {
    let groups = this.tenants.get(command.tenant);
    if (groups === undefined) {
      groups = new PollGroups<Poll>();
      this.tenants.set(command.tenant, groups);
    }
    const poll = new Poll(this, groups, command, holdMs === 0 ? 0 : this.engine.now() + holdMs, outlet);
    poll.submit();
    return () => poll.drop();
  }

  /** The server is shutting down, or policies have changed: all are answered that there is nothing. */
  wakeAll(): void {
    for (const poll of this.waiting()) poll.finish();
  }

  /** Takes a waiting poll out for the task; null where nobody who could do it waits. */
  findFor(task: ReadyTask): Poll | null {
    const groups = this.tenants.get(task.tenant);
    if (groups === undefined) return null;
    const able = groups.groupsFor(task);
    const poll = groups.find(task, able);
    if (poll?.takeOut() === true) return poll;
    for (const group of able) group.missed++;
    return null;
  }

  removeIfUnused(tenant: string, groups: PollGroups<Poll>): void {
    if (groups.isUnused) this.tenants.delete(tenant);
  }

  private wakeFor(ready: readonly ReadyTask[]): void {
    if (this.tenants.size === 0) return;
    const woken: Poll[] = [];
    for (const task of ready) {
      const poll = this.findFor(task);
      if (poll === null) continue;
      poll.woken = { ready: task, passes: passesMax };
      woken.push(poll);
    }
    // At once: the engine announces before it sends a batch off, so that creation and offer share one commit.
    for (const poll of woken) poll.submit();
  }

  private waiting(): readonly Poll[] {
    return [...this.tenants.values()].flatMap((groups) => [...groups.all()]);
  }
}

class Poll implements Outlet {
  readonly encode = null;
  readonly workerId: string;
  readonly group: PollGroup<Poll>;
  /** From 0 to 1, as it was when the poll began to wait. */
  health = 1;
  /** The task that it was woken for. */
  woken: { readonly ready: ReadyTask; readonly passes: number } | null = null;
  private readonly polls: Polls;
  private readonly groups: PollGroups<Poll>;
  private readonly command: PollTasks;
  private readonly until: Millis;
  private readonly outlet: PollOutlet;
  private state: "asking" | "waiting" | "over" = "asking";
  private isGone = false;
  /** The hold is over: what comes next is the answer. */
  private isLast = false;
  /** `group.missed` when it was last submitted. */
  private missed = 0;
  private rounds = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(polls: Polls, groups: PollGroups<Poll>, command: PollTasks, until: Millis, outlet: PollOutlet) {
    const { tenant, workerId, capabilities, acceptTypes } = command;
    this.polls = polls;
    this.groups = groups;
    this.command = command;
    this.workerId = workerId;
    this.until = until;
    this.outlet = outlet;
    // What it says now, or said before (T9).
    const able =
      capabilities ?? polls.engine.peek((state) => findRecord(state, tenant, "worker", workerId)?.capabilities) ?? [];
    const permit = polls.engine.peek((state) => workPermitOf(state, command, workerId));
    this.group = groups.enter(able, acceptTypes ?? null, permit);
  }

  submit(): void {
    if (this.isGone) return this.end();
    this.missed = this.group.missed;
    this.polls.engine.submit(this.command, this);
  }

  send(decided: Decision): void {
    const { engine } = this.polls;
    const { reply } = decided;
    if (this.isGone) {
      this.end();
      if (reply.type === "offers") giveBack(engine, this.command, reply.offers);
      return;
    }
    if (reply.type !== "offers" || reply.offers.length > 0) return this.answer(decided);
    if (reply.more && ++this.rounds < roundsMax) {
      setImmediate(() => this.submit());
      return;
    }
    this.passOn();
    if (this.isLast || this.until <= engine.now()) return this.answer(decided);
    if (this.missed !== this.group.missed) return this.submit();
    this.wait();
  }

  fail(fault: Error): void {
    this.end();
    this.outlet.fail(fault);
  }

  takeOut(): boolean {
    if (this.state !== "waiting") return false;
    this.groups.take(this, this.group);
    this.state = "asking";
    this.polls.size--;
    return true;
  }

  /** The end of a hold. */
  finish(): void {
    this.isLast = true;
    if (this.takeOut()) this.answer({ reply: nothing, now: this.polls.engine.now(), receipts: [] });
  }

  drop(): void {
    if (this.state === "over") return;
    this.isGone = true;
    if (this.takeOut()) this.end();
  }

  private wait(): void {
    const { engine } = this.polls;
    const { tenant } = this.command;
    this.state = "waiting";
    this.rounds = 0;
    this.health = engine.peek((state) => findRecord(state, tenant, "worker", this.workerId)?.health) ?? 1;
    this.groups.wait(this, this.group);
    this.polls.size++;
    this.timer ??= setTimeout(() => this.finish(), Math.max(0, this.until - engine.now()));
  }

  /** Another worker may be able to take what this one could not: a second attempt at a task, for instance (T8). */
  private passOn(): void {
    const { woken } = this;
    this.woken = null;
    if (woken === null || woken.passes === 0) return;
    const next = this.polls.findFor({ ...woken.ready, lastWorker: null });
    if (next === null) return;
    next.woken = { ready: woken.ready, passes: woken.passes - 1 };
    next.submit();
  }

  private answer(decided: Decision): void {
    this.end();
    this.outlet.send(decided);
  }

  private end(): void {
    if (this.state === "over") return;
    this.state = "over";
    if (this.timer !== null) clearTimeout(this.timer);
    this.groups.leave(this.group);
    this.polls.removeIfUnused(this.command.tenant, this.groups);
  }
}

const nothing = { type: "offers", offers: [], more: false } as const;

/**
 * The client is gone, so the offers go back before their leases end (T2). A poll with a request_id can be repeated and gets
 * them then (T1), and what was reclaimed had been accepted before.
 */
function giveBack(engine: Engine, { tenant, actor, requestKey, reclaim }: PollTasks, offers: readonly Offer[]): void {
  if (requestKey !== null || reclaim) return;
  for (const { lease } of offers) {
    // If that fails, the lease ends by itself.
    engine
      .command({ type: "release_task", tenant, actor, leaseId: lease.id, undelivered: true, entropy: unstamped })
      .catch(() => undefined);
  }
}
