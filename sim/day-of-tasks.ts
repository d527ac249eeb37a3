/**
 * A day of idempotent creation, compressed by a simulated clock: tasks are created with keys, done, and over. What the kernel and
 * the live rows hold must not grow with them (S4, T12).
 *
 *   npm run sim:day [-- --hours 24 --per-second 100]
 */
import { parseArgs } from "node:util";
import { blank } from "../src/kernel/contract/field.ts";
import { receiptInput, taskInput } from "../src/kernel/contract/inputs.ts";
import { apply, createState, type State, snapshot } from "../src/kernel/kernel.ts";

export interface DayReport {
  readonly tasks: number;
  /** Live records after a tenth of the time, and at the end. */
  readonly recordsEarly: number;
  readonly records: number;
  readonly heapEarly: number;
  readonly heap: number;
}

const operator = { role: "operator", agentId: null, epoch: null } as const;

/** One task after the other: created, offered, accepted, completed. */
export function runDay(hours: number, perSecond: number, collect: () => void = () => undefined): DayReport {
  const state: State = createState();
  let now = 1_800_000_000_000;
  let drawn = 0;
  const send = (command: object) => {
    const asked = { tenant: "t", actor: operator, entropy: [drawn++ >>> 0, 7] as const, ...command };
    return apply(state, asked as unknown as Parameters<typeof apply>[1], now).reply;
  };
  send({ type: "create_tenant", tenantId: "t" });
  const tasks = Math.round(hours * 3_600 * perSecond);
  const heapUsed = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  let [recordsEarly, heapEarly] = [0, 0];
  for (let nth = 0; nth < tasks; nth++) {
    now = 1_800_000_000_000 + Math.floor((nth * 1_000) / perSecond);
    const task = { ...blank(taskInput), taskType: "build", principalAi: "lead", idempotencyKey: `key ${nth}` };
    send({ type: "create_task", task, endedDependencies: null });
    const polling = { type: "poll_tasks", workerId: "w.1", capabilities: null, maxTasks: 1, preferredKinds: null };
    const polled = send({ ...polling, requestKey: null, reclaim: false });
    if (polled.type !== "offers") throw new Error(`no offer: ${JSON.stringify(polled)}`);
    const leaseId = polled.offers[0]?.lease.id;
    for (const said of [{ phase: "accepted" }, { phase: "complete", status: "success" }]) {
      const receipt = { ...blank(receiptInput), leaseId, ...said };
      const { type } = send({ type: "submit_receipt", receipt });
      if (type !== "receipt") throw new Error(`the receipt was answered with ${type}`);
    }
    if (nth === Math.floor(tasks / 10)) [recordsEarly, heapEarly] = [snapshot(state).length, heapUsed()];
  }
  return { tasks, recordsEarly, records: snapshot(state).length, heapEarly, heap: heapUsed() };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { hours: { type: "string", default: "24" }, "per-second": { type: "string", default: "100" } },
  });
  const began = performance.now();
  const { gc } = globalThis as { readonly gc?: () => void };
  const report = runDay(Number(values.hours), Number(values["per-second"]), gc);
  const mb = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);
  console.log(
    `${report.tasks} tasks in ${((performance.now() - began) / 1_000).toFixed(0)} s: live records ${report.recordsEarly} after a tenth, ` +
      `${report.records} at the end; heap ${mb(report.heapEarly)} and ${mb(report.heap)} MB`,
  );
  process.exitCode = report.records > report.recordsEarly + 10 ? 1 : 0;
}
