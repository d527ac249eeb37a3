/** The common steps of task tests: create, poll, accept, complete, each of which must succeed. */

import assert from "node:assert/strict";
import { type Body, type CallOptions, type Client, type HttpAnswer, until } from "./harness.ts";
import type { NewReceiptInput, WireCreatedTask, WireOffer, WireReceipt, WireTask } from "./wire-types.ts";

export interface ShownTask extends WireTask {
  readonly task_body: string | null;
  readonly inputs: unknown;
  readonly result: WireReceipt | null;
  readonly receipts: readonly WireReceipt[];
}

/** The fields of a refusal that these tests read. */
export interface Refused extends Body {
  readonly winning_receipt_id?: string;
  readonly task_id?: string;
  readonly lease_id?: string;
}

export interface TaskClient {
  create(more?: object, options?: CallOptions): Promise<string>;
  /** The offer, or null if there was no work. */
  poll(workerId: string, more?: object, options?: CallOptions): Promise<WireOffer | null>;
  /** The offer, which must exist. */
  offered(workerId: string, more?: object): Promise<WireOffer>;
  send(receipt: Partial<NewReceiptInput>, options?: CallOptions): Promise<HttpAnswer<WireReceipt & Refused>>;
  accept(offer: WireOffer): Promise<WireReceipt>;
  complete(offer: WireOffer, more?: object): Promise<WireReceipt>;
  show(taskId: string): Promise<ShownTask>;
  /** Waits until the task has this status. */
  reach(taskId: string, status: WireTask["status"]): Promise<ShownTask>;
  phases(taskId: string): Promise<readonly string[]>;
}

export function taskClientOf({ post, get }: Client): TaskClient {
  const client: TaskClient = {
    async create(more = {}, options = {}) {
      const asked = { task_type: "code.generate", principal_ai: "delegate.root", ...more };
      const { status, body, text } = await post<WireCreatedTask>("/v1/tasks", asked, options);
      assert.ok(status === 201 || status === 200, text);
      return body.task_id;
    },
    async poll(workerId, more = {}, options = {}) {
      const { status, body, text } = await post<WireOffer>("/lease", { worker_id: workerId, ...more }, options);
      if (status === 204) return null;
      assert.equal(status, 200, text);
      return body;
    },
    async offered(workerId, more) {
      const offer = await client.poll(workerId, more);
      assert.ok(offer !== null, `${workerId} is offered work`);
      return offer;
    },
    send: (receipt, options = {}) => post("/v1/receipts", receipt, options),
    async accept({ lease_id }) {
      const { status, body, text } = await client.send({ phase: "accepted", lease_id });
      assert.equal(status, 201, text);
      return body;
    },
    async complete({ lease_id }, more = {}) {
      const { status, body, text } = await client.send({ phase: "complete", status: "success", lease_id, ...more });
      assert.equal(status, 201, text);
      return body;
    },
    async show(taskId) {
      const { status, body, text } = await get<ShownTask>(`/v1/tasks/${taskId}`);
      assert.equal(status, 200, text);
      return body;
    },
    reach: (taskId, wanted) =>
      until(async () => {
        const task = await client.show(taskId);
        return task.status === wanted ? task : null;
      }, `${taskId} is ${wanted}`),
    phases: async (taskId) =>
      (await client.show(taskId)).receipts.map(({ phase, status, escalation_reason: reason }) =>
        phase === "complete" ? `complete ${status}` : phase === "escalate" ? `escalate ${reason}` : phase,
      ),
  };
  return client;
}
