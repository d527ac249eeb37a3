/**
 * What the kernel cannot say because it knows only what is alive: how a lease or task ended, and which receipts the ledger
 * has. The store's history has it; ended is final, so asking after the decision cannot race.
 */
import type { Command } from "../kernel/contract/commands.ts";
import { leaseIdWith, suffixOf } from "../kernel/contract/ids.ts";
import { limits } from "../kernel/contract/limits.ts";
import type { Digest, EndedRequest, Lease } from "../kernel/contract/records.ts";
import type { Refusal } from "../kernel/contract/refusals.ts";
import type { LostLease, Offer, Reply } from "../kernel/contract/replies.ts";
import type { EndedTask, Payload, Task } from "../kernel/contract/task-records.ts";
import {
  type Away,
  answerForEnded,
  answerForEndedRequest,
  answerForEndedTask,
  bringBack,
  carriedBy,
  findAway,
  type Handle,
  putAway,
  type State,
} from "../kernel/kernel.ts";
import { findTask, taskOfName } from "../kernel/views.ts";
import { readStoredReceipt, type SealedReceipt } from "../ledger/seal.ts";
import type { AgentKey, EventsAfter, EventsQuery, History } from "../store/store.ts";
import type { Carrier, Waiting } from "./batch.ts";
import { type EncodeEvent, sentEventText } from "./codec/event-text.ts";
import { readEndedTask, readLease } from "./codec/record-text.ts";
import { readers } from "./codec/records.gen.ts";
import { DatabaseUnavailable, type Decision, type Outlet } from "./engine-types.ts";

/** Whether the reply leaves something open that only history can answer. */
export function needsHistory(reply: Reply): boolean {
  switch (reply.type) {
    case "refused":
      return reply.code === "lease_unknown" || reply.code === "task_unknown" || reply.code === "request_unknown";
    case "leases":
      return reply.lost.some(({ lease }) => lease === null);
    default:
      return false;
  }
}

export async function completeReply(history: History, command: Command, reply: Reply): Promise<Reply> {
  const { tenant } = command;
  switch (reply.type) {
    case "refused":
      if (reply.code === "task_unknown" && reply.taskId !== undefined)
        return answerForEndedTask(command, reply, await findEndedTask(history, tenant, reply.taskId));
      if (reply.code === "lease_unknown" && reply.leaseId !== undefined) {
        const [lease = null] = await endedLeases(history, tenant, [reply.leaseId]);
        const isForTask = command.type === "heartbeat_task" || command.type === "release_task";
        return isForTask ? answerForTaskLease(command, reply, lease) : answerForEnded(command, reply, lease);
      }
      if (reply.code === "request_unknown" && "requestId" in command) {
        const grant = await history.endedGrant(tenant, leaseIdWith(suffixOf(command.requestId), 0));
        return answerForEndedRequest(
          command,
          reply,
          grant.map(({ body }) => readLease(body)),
        );
      }
      return reply;
    case "leases":
      if (!("agentId" in command)) return reply;
      return { ...reply, lost: await completeLost(history, tenant, command.agentId, reply.lost) };
    default:
      return reply;
  }
}

/**
 * How a task's lease ended. Any worker may learn it: a lease's id is a name, not a secret (L13), and the worker is the one
 * who asks. Giving back what is over changes nothing (L5).
 */
function answerForTaskLease(command: Command, unknown: Refusal, lease: Lease | null): Reply {
  if (lease === null || taskOfName(lease.resource) === null) return unknown;
  if (command.type === "release_task") return { type: "lease", lease };
  return answerForEnded({ ...command, actor: above }, unknown, lease);
}

const above = { role: "supervisor", agentId: null, epoch: null } as const;

/** The tenant's events after a number, as they are sent. */
export async function eventsAfter(
  { store, encodeEvent }: { readonly store: Pick<History, "eventsAfter">; readonly encodeEvent: EncodeEvent },
  query: EventsQuery,
): Promise<EventsAfter> {
  const found = await store.eventsAfter(query);
  return { ...found, texts: found.texts.map((text) => sentEventText(query.tenant, text, encodeEvent)) };
}

export async function endedLeases(history: History, tenant: string, ids: readonly string[]): Promise<Lease[]> {
  const rows = await history.endedLease(tenant, ids);
  return rows.map(({ body }) => readLease(body));
}

export async function endedTasks(history: History, tenant: string, ids: readonly string[]): Promise<EndedTask[]> {
  const rows = await history.endedTasks(tenant, ids);
  return rows.map(({ body }) => readEndedTask(body));
}

/** The ended tasks that were created with these idempotency keys (T12). */
export async function endedTasksByKey(
  history: History,
  tenant: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, EndedTask>> {
  const found = new Map<string, EndedTask>();
  for (const { body, idempotencyKey } of await history.endedTasksByKey(tenant, keys))
    if (idempotencyKey !== null) found.set(idempotencyKey, readEndedTask(body));
  return found;
}

/** The requests with these keys that memory has forgotten, each under its agent and key (W10). */
export async function endedRequests(
  history: History,
  tenant: string,
  keys: readonly AgentKey[],
): Promise<ReadonlyMap<string, EndedRequest>> {
  const found = new Map<string, EndedRequest>();
  for (const { endedAs, ...row } of await history.endedRequests(tenant, keys)) {
    const request = { ...row, endedAs: endedAs as EndedRequest["endedAs"] };
    found.set(JSON.stringify([row.agentId, row.key]), request);
  }
  return found;
}

/** With its payload. */
export async function findEndedTask(history: History, tenant: string, id: string): Promise<EndedTask | null> {
  const [row] = await history.endedTasks(tenant, [id]);
  if (row === undefined) return null;
  const task = readEndedTask(row.body);
  if (row.payload === null) return task;
  const [stored] = await history.payloads([row.payload]);
  return stored === undefined ? task : { ...task, payload: readers.payload(stored.body) };
}

/** Of leases that have ended: the tasks that they were on. */
export async function tasksOfEndedLeases(
  history: History,
  tenant: string,
  leaseIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const leases = await endedLeases(history, tenant, leaseIds);
  return new Map(
    leases.flatMap(({ id, resource }) => {
      const taskId = taskOfName(resource);
      return taskId === null ? [] : [[id, taskId] as const];
    }),
  );
}

/** If a client has used an id twice, the first receipt counts. */
export async function findReceipt(history: History, tenant: string, id: string): Promise<SealedReceipt | null> {
  const [row] = await history.receiptsById(tenant, [id]);
  return row === undefined ? null : readStoredReceipt(row);
}

/** L8: the truth for each of the agent's own; another's lease looks unknown. */
async function completeLost(
  history: History,
  tenant: string,
  agentId: string | null,
  lost: readonly LostLease[],
): Promise<LostLease[]> {
  const unknown = lost.filter(({ lease }) => lease === null).map(({ id }) => id);
  const ended = new Map<string, Lease>();
  for (const lease of await endedLeases(history, tenant, unknown))
    if (lease.agentId === agentId) ended.set(lease.id, lease);
  return lost.map((one) => ({ ...one, lease: one.lease ?? ended.get(one.id) ?? null }));
}

/** What the payloads need of the engine. */
export interface PayloadOwner {
  readonly store: Pick<History, "payloads">;
  readonly isFull: boolean;
  onceEmpty(listener: () => void): void;
  peek<T>(read: (state: State) => T): T;
  submit<T>(command: Command, outlet: Outlet<T>): void;
}

/** Text that memory keeps by default. As objects it takes a multiple. */
export const payloadCharsMax = 16 * 1024 * 1024;
/** Of one query, so that many large ones never are in memory at once. */
const payloadsPerQuery = 64;
const bytesPerQuery = 2 * 1024 * 1024;

interface Kept {
  readonly record: Payload | Digest;
  readonly chars: number;
}

interface Wanted {
  readonly handle: Handle;
  /** Its record when it was asked for: a digest may be replaced meanwhile. */
  readonly record: Handle["record"];
  /** Its number then: a task that has ended since has none, but its payload stays. */
  readonly row: number;
  readonly resolve: (content: unknown) => void;
  readonly reject: (fault: unknown) => void;
}

/**
 * S4: what is large and not decided with. Memory keeps the youngest of it, by the size of its text, and gives the rest up once
 * it is stored; it is read again when something needs it, in the order in which it was asked for.
 */
export class Payloads {
  private readonly owner: PayloadOwner;
  private readonly charsMax: number;
  /** The one that was not used for longest comes first. */
  private readonly kept = new Map<Handle, Kept>();
  private chars = 0;
  private readonly asked = new Map<Handle, Promise<unknown>>();
  private wanted: Wanted[] = [];
  private isReading = false;

  constructor(owner: PayloadOwner, charsMax = payloadCharsMax) {
    this.owner = owner;
    this.charsMax = charsMax;
  }

  /** These are durable, or over. */
  note(carriers: readonly Carrier[]): void {
    for (const { handle, chars } of carriers) this.keep(handle, chars);
    this.evict();
  }

  /** Memory was dropped. */
  clear(): void {
    this.kept.clear();
    this.chars = 0;
  }

  /** Brings the payload of a task, or the context of a digest, back into memory, and resolves with it. */
  private bring(handle: Handle): Promise<unknown> {
    const known = this.asked.get(handle);
    if (known !== undefined) return known;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.asked.set(handle, promise);
    this.wanted.push({ handle, record: handle.record, row: handle.row, resolve, reject });
    if (!this.isReading) void this.read();
    return promise;
  }

  /** Decides a command once what it needs is in memory. What is submitted meanwhile and needs the same comes after it. */
  decideWith<T>(command: Command, outlet: Outlet<T>, away: Away): void {
    this.bringFor(command.tenant, away).then(
      () => this.owner.submit(command, outlet),
      (fault: unknown) => outlet.fail(new DatabaseUnavailable(fault)),
    );
  }

  /** Reads what the offers lack while the batch is written; the answer leaves when both are done. */
  answerWith<T>(decided: Decision, outlet: Outlet<T>): Waiting<null> {
    const offers = decided.reply.type === "offers" ? decided.reply.offers : [];
    const filled = Promise.all(
      offers.map(async (offer) => {
        const { tenant, id } = offer.task;
        return lackPayload(offer) ? { ...offer, payload: await this.ofTask(tenant, id) } : offer;
      }),
    );
    filled.catch(() => undefined);
    const send = (): void => {
      filled.then(
        (whole) => {
          const reply = { ...decided, reply: { ...decided.reply, offers: whole } as Reply };
          outlet.send(outlet.encode === null ? (reply as T) : outlet.encode(reply));
        },
        (fault: unknown) => outlet.fail(new DatabaseUnavailable(fault)),
      );
    };
    return { encoded: null, outlet: { send, fail: (fault) => outlet.fail(fault) } };
  }

  /** That of a live task; null where it has none, or is not alive. */
  async ofTask(tenant: string, taskId: string): Promise<Payload | null> {
    const found = this.owner.peek((state) => findTask(state, tenant, taskId));
    if (found === null || found.payload !== null || found.task.payloadBytes === 0) return found?.payload ?? null;
    return ((await this.bringFor(tenant, { taskId, agentId: null })) ?? null) as Payload | null;
  }

  /** Brings the context of an agent's digest into memory. */
  async bringDigest(tenant: string, agentId: string): Promise<void> {
    await this.bringFor(tenant, { taskId: null, agentId });
  }

  private bringFor(tenant: string, away: Away): Promise<unknown> {
    const handle = this.owner.peek((state) => findAway(state, tenant, away));
    return handle === null ? Promise.resolve(null) : this.bring(handle);
  }

  private keep(handle: Handle, chars: number): void {
    const before = this.kept.get(handle);
    if (before !== undefined) this.kept.delete(handle);
    this.chars -= before?.chars ?? 0;
    const record = chars === 0 ? null : carriedBy(handle);
    if (record === null) return;
    this.kept.set(handle, { record, chars });
    this.chars += chars;
  }

  private evict(): void {
    for (const [oldest, { record: stored, chars: its }] of this.kept) {
      if (this.chars <= this.charsMax) return;
      this.kept.delete(oldest);
      this.chars -= its;
      putAway(oldest, stored);
    }
  }

  private async read(): Promise<void> {
    this.isReading = true;
    while (this.wanted.length > 0) {
      // What comes of it goes into the batch (R8).
      if (this.owner.isFull) await new Promise<void>((resolve) => this.owner.onceEmpty(() => setImmediate(resolve)));
      const some = this.takeSome();
      try {
        const rows = await this.owner.store.payloads(some.map(({ row }) => row));
        const texts = new Map(rows.map(({ n, body }) => [n, body]));
        for (const one of some) this.deliver(one, texts.get(one.row));
      } catch (fault) {
        for (const { handle, reject } of some) {
          this.asked.delete(handle);
          reject(fault);
        }
      }
      // Those who asked go on with it before it may be put away again, and before the next are read.
      await new Promise<void>((resolve) => setImmediate(resolve));
      this.evict();
    }
    this.isReading = false;
  }

  private takeSome(): Wanted[] {
    let [count, bytes] = [0, 0];
    for (const { record } of this.wanted) {
      if (count >= payloadsPerQuery || bytes >= bytesPerQuery) break;
      count++;
      bytes += "payloadBytes" in record ? record.payloadBytes : limits.digestBytesMax;
    }
    return this.wanted.splice(0, count);
  }

  private deliver({ handle, record, resolve }: Wanted, text: string | undefined): void {
    this.asked.delete(handle);
    const content = handle.kind === "task" ? payloadIn(record as Task, text) : JSON.parse(text ?? "null");
    const carrier = bringBack(handle, record, content);
    if (carrier !== null) this.keep(carrier, Math.max(1, text?.length ?? 0));
    resolve(content);
  }
}

/** Of a task; an empty one where somebody has deleted it by hand, so that the task can be done or canceled. */
function payloadIn({ tenant, id: taskId }: Task, text: string | undefined): Payload {
  return text === undefined ? { tenant, taskId, taskBody: null, inputs: null } : readers.payload(text);
}

/** An offer whose task has its payload in the store alone. */
function lackPayload({ payload, task }: Offer): boolean {
  return payload === null && task.payloadBytes > 0;
}
