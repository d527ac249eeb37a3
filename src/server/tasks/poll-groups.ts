/**
 * Waiting polls of one tenant, grouped by what their workers can do, so that a task which becomes ready finds its worker
 * without a scan of all polls. Within a group the healthier worker goes first, and then the one that came first (T8).
 */
import type { ReadyTask } from "../../kernel/kernel.ts";

export interface Waiting {
  readonly workerId: string;
  readonly group: PollGroup<Waiting>;
  /** From 0 to 1, as it was when the poll began to wait. */
  readonly health: number;
}

/** What policies allow workers of a group; the same key means the same permit. */
export interface WorkPermit {
  readonly key: string;
  readonly mayTake: (taskType: string) => boolean;
}

/** Not part of any name. */
const between = "\0";
/** Health is rounded to this many steps. */
const healthSteps = 10;

/** Polls of workers that can do the same. */
export class PollGroup<P extends { readonly workerId: string }> {
  readonly key: string;
  readonly capabilities: ReadonlySet<string>;
  /** The only types that they take; null: any. */
  readonly types: ReadonlySet<string> | null;
  /** What policies let them work on; null: anything. */
  readonly permit: WorkPermit | null;
  /** Raised when a task became ready while no poll of the group was waiting: polls under way then ask again. */
  missed = 0;
  /** Polls of the group, waiting or not; without any it is removed. */
  users = 0;
  private readonly byHealth: (Set<P> | undefined)[] = [];

  constructor(
    key: string,
    capabilities: readonly string[],
    types: readonly string[] | null,
    permit: WorkPermit | null,
  ) {
    this.key = key;
    this.capabilities = new Set(capabilities);
    this.types = types === null ? null : new Set(types);
    this.permit = permit;
  }

  add(poll: P, health: number): void {
    const step = stepOf(health);
    const polls = this.byHealth[step];
    if (polls === undefined) this.byHealth[step] = new Set([poll]);
    else polls.add(poll);
  }

  delete(poll: P, health: number): void {
    this.byHealth[stepOf(health)]?.delete(poll);
  }

  /** The first poll of this step of health that is of another worker than this one. */
  first(step: number, except: string | null): P | undefined {
    const polls = this.byHealth[step];
    if (polls === undefined) return undefined;
    for (const poll of polls) if (poll.workerId !== except) return poll;
    return undefined;
  }

  suits({ taskType, requires }: ReadyTask): boolean {
    if (this.types !== null && !this.types.has(taskType)) return false;
    if (this.permit !== null && !this.permit.mayTake(taskType)) return false;
    return requires.every((tag) => this.capabilities.has(tag));
  }
}

function stepOf(health: number): number {
  return Math.min(healthSteps, Math.max(0, Math.round(health * healthSteps)));
}

function inOrder(texts: readonly string[]): readonly string[] {
  return texts.length > 1 ? [...new Set(texts)].sort() : texts;
}

/** Tasks may have any number of types; what is remembered of them is only a short cut (S4). */
const rememberedMax = 1_024;

export class PollGroups<P extends Waiting> {
  private readonly groups = new Map<string, PollGroup<P>>();
  /** Groups by a task's type and requirements; filled on demand, cleared when a group is added or removed. */
  private byRequires = new Map<string, readonly PollGroup<P>[]>();
  private readonly byWorker = new Map<string, Set<P>>();
  size = 0;

  /** How many kinds of tasks it remembers the groups of. */
  get remembered(): number {
    return this.byRequires.size;
  }

  get isUnused(): boolean {
    return this.groups.size === 0;
  }

  enter(
    capabilities: readonly string[],
    types: readonly string[] | null,
    permit: WorkPermit | null = null,
  ): PollGroup<P> {
    const sorted = inOrder(capabilities);
    const wanted = types === null ? [] : [between, ...inOrder(types)];
    const permitted = permit === null ? [] : [between, between, permit.key];
    const key = [...sorted, ...wanted, ...permitted].join(between);
    let group = this.groups.get(key);
    if (group === undefined) {
      group = new PollGroup<P>(key, sorted, types, permit);
      this.groups.set(key, group);
      this.byRequires = new Map();
    }
    group.users++;
    return group;
  }

  leave(group: PollGroup<P>): void {
    group.users--;
    if (group.users > 0) return;
    this.groups.delete(group.key);
    this.byRequires = new Map();
  }

  wait(poll: P, group: PollGroup<P>): void {
    group.add(poll, poll.health);
    const own = this.byWorker.get(poll.workerId);
    if (own === undefined) this.byWorker.set(poll.workerId, new Set([poll]));
    else own.add(poll);
    this.size++;
  }

  take(poll: P, group: PollGroup<P>): void {
    group.delete(poll, poll.health);
    const own = this.byWorker.get(poll.workerId);
    own?.delete(poll);
    if (own?.size === 0) this.byWorker.delete(poll.workerId);
    this.size--;
  }

  groupsFor(task: ReadyTask): readonly PollGroup<P>[] {
    const { taskType, requires } = task;
    const key = requires.length === 0 ? taskType : [taskType, ...requires].join(between);
    let found = this.byRequires.get(key);
    if (found === undefined) {
      if (this.byRequires.size >= rememberedMax) this.byRequires.clear();
      found = [...this.groups.values()].filter((group) => group.suits(task));
      this.byRequires.set(key, found);
    }
    return found;
  }

  /** The waiting poll to wake first: the worker that had the task before, or the healthiest that does not have it (T7, T8). */
  find(task: ReadyTask, groups: readonly PollGroup<P>[]): P | undefined {
    if (this.size === 0) return undefined;
    if (task.lastWorker !== null) {
      for (const poll of this.byWorker.get(task.lastWorker) ?? []) if (poll.group.suits(task)) return poll;
    }
    for (let step = healthSteps; step >= 0; step--) {
      for (const group of groups) {
        const poll = group.first(step, task.runningOn);
        if (poll !== undefined) return poll;
      }
    }
    return undefined;
  }

  *all(): Generator<P> {
    for (const polls of this.byWorker.values()) yield* polls;
  }
}
