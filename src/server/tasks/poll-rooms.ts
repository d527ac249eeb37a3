/**
 * Where polls wait for work, so that a task which becomes ready finds its worker without a look at all the others: by
 * tenant, then by what a worker can do. Within a room the healthier worker goes first, and then who came first (T8).
 */
import type { ReadyTask } from "../../kernel/kernel.ts";

export interface Waiting {
  readonly workerId: string;
  readonly room: Room<Waiting>;
  /** From 0 to 1, as it was when the poll began to wait. */
  readonly health: number;
}

/** No text from outside holds it. */
const between = "\0";
/** Health is told apart in so many steps. */
const healthSteps = 10;

/** Polls of workers that can do the same. */
export class Room<P> {
  readonly key: string;
  readonly capabilities: ReadonlySet<string>;
  /** The only types that they take; null: any. */
  readonly types: ReadonlySet<string> | null;
  /** Raised when work came for which nobody here was waiting: who is just asking then asks again. */
  missed = 0;
  /** Polls that are on their way, waiting or not; without any the room is closed. */
  users = 0;
  private readonly shelves: (Set<P> | undefined)[] = [];

  constructor(key: string, capabilities: readonly string[], types: readonly string[] | null) {
    this.key = key;
    this.capabilities = new Set(capabilities);
    this.types = types === null ? null : new Set(types);
  }

  add(poll: P, health: number): void {
    const step = stepOf(health);
    const shelf = this.shelves[step];
    if (shelf === undefined) this.shelves[step] = new Set([poll]);
    else shelf.add(poll);
  }

  delete(poll: P, health: number): void {
    this.shelves[stepOf(health)]?.delete(poll);
  }

  /** The first of this step; undefined where nobody waits. */
  first(step: number): P | undefined {
    const shelf = this.shelves[step];
    if (shelf === undefined) return undefined;
    for (const poll of shelf) return poll;
    return undefined;
  }

  suits({ taskType, requires }: ReadyTask): boolean {
    if (this.types !== null && !this.types.has(taskType)) return false;
    return requires.every((tag) => this.capabilities.has(tag));
  }
}

function stepOf(health: number): number {
  return Math.min(healthSteps, Math.max(0, Math.round(health * healthSteps)));
}

function inOrder(texts: readonly string[]): readonly string[] {
  return texts.length > 1 ? [...new Set(texts)].sort() : texts;
}

export class Rooms<P extends Waiting> {
  private readonly rooms = new Map<string, Room<P>>();
  /** Rooms by type and what a task requires; made when it is first asked for, anew when a room opens or closes. */
  private byRequires = new Map<string, readonly Room<P>[]>();
  private readonly byWorker = new Map<string, Set<P>>();
  size = 0;

  get isUnused(): boolean {
    return this.rooms.size === 0;
  }

  enter(capabilities: readonly string[], types: readonly string[] | null): Room<P> {
    const sorted = inOrder(capabilities);
    const key = [...sorted, ...(types === null ? [] : [between, ...inOrder(types)])].join(between);
    let room = this.rooms.get(key);
    if (room === undefined) {
      room = new Room<P>(key, sorted, types);
      this.rooms.set(key, room);
      this.byRequires = new Map();
    }
    room.users++;
    return room;
  }

  leave(room: Room<P>): void {
    room.users--;
    if (room.users > 0) return;
    this.rooms.delete(room.key);
    this.byRequires = new Map();
  }

  wait(poll: P, room: Room<P>): void {
    room.add(poll, poll.health);
    const own = this.byWorker.get(poll.workerId);
    if (own === undefined) this.byWorker.set(poll.workerId, new Set([poll]));
    else own.add(poll);
    this.size++;
  }

  take(poll: P, room: Room<P>): void {
    room.delete(poll, poll.health);
    const own = this.byWorker.get(poll.workerId);
    own?.delete(poll);
    if (own?.size === 0) this.byWorker.delete(poll.workerId);
    this.size--;
  }

  roomsFor(task: ReadyTask): readonly Room<P>[] {
    const { taskType, requires } = task;
    const key = requires.length === 0 ? taskType : [taskType, ...requires].join(between);
    let found = this.byRequires.get(key);
    if (found === undefined) {
      found = [...this.rooms.values()].filter((room) => room.suits(task));
      this.byRequires.set(key, found);
    }
    return found;
  }

  /** Who waits and is to be asked first: the worker that had the task before, or the healthiest (T7, T8). */
  find(task: ReadyTask, rooms: readonly Room<P>[]): P | undefined {
    if (this.size === 0) return undefined;
    if (task.lastWorker !== null) {
      for (const poll of this.byWorker.get(task.lastWorker) ?? []) if (poll.room.suits(task)) return poll;
    }
    for (let step = healthSteps; step >= 0; step--) {
      for (const room of rooms) {
        const poll = room.first(step);
        if (poll !== undefined) return poll;
      }
    }
    return undefined;
  }

  *all(): Generator<P> {
    for (const polls of this.byWorker.values()) yield* polls;
  }
}
