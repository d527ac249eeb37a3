/** Permissions: an older instance changes nothing (A3), and no holder is wounded by a younger requester (W7). */
import { type Step, violated } from "./step.ts";

export function checkActor({ command, reply, changes, store }: Step): void {
  if (command === null || reply === null || command.type === "register_agent") return;
  const { role, agentId, epoch } = command.actor;
  if (role !== "agent" || agentId === null || reply.type === "refused") return;
  // As it was before the step: the command itself may have raised the epoch.
  const change = changes.find(
    (one) => one.kind === "agent" && one.after?.id === agentId && one.after.tenant === command.tenant,
  );
  const agent =
    change?.kind === "agent" && change.before !== null
      ? change.before
      : store.agent.get(`${command.tenant} ${agentId}`);
  if (agent !== undefined && agent.epoch !== epoch) {
    violated("A3", `a command of epoch ${epoch} was accepted, but the agent is at ${agent.epoch}`, command, reply);
  }
}

export function checkWounds(step: Step): void {
  const { command, events, store } = step;
  for (const event of events) {
    if ((event.type !== "lease.revoked" && event.type !== "lease.closing") || event.reason !== "wounded") continue;
    if (event.type === "lease.revoked" && event.lease.cell !== null) continue; // Wounded when it began to close.
    const requester = oldestRequester(step);
    if (requester === null) violated("W7", "a lease was wounded without a request", command, event);
    const id = `${event.tenant} ${event.lease.holder}`;
    const gone = step.ended.find((task) => `${task.tenant} ${task.id}` === id);
    const holder = store.agent.get(id)?.priority ?? (store.task.get(id) ?? gone)?.timestamp;
    if (holder === undefined || requester >= holder) {
      violated("W7", "a lease was wounded by a younger requester", command, event.lease);
    }
  }
}

/** The wounding requester: the agent that acquires, or a task that a worker's poll granted or queued (T10). */
function oldestRequester({ command, changes, store }: Step): number | null {
  if (command?.type === "acquire") return store.agent.get(`${command.tenant} ${command.agentId}`)?.priority ?? null;
  if (command?.type !== "poll_tasks") return null;
  const ages = changes.map((change) => {
    if (change.kind === "task" && change.after !== null && change.after.live.length > 0) return change.after.timestamp;
    if (change.kind !== "request" || change.before !== null || change.after === null) return Number.POSITIVE_INFINITY;
    return store.task.get(`${change.after.tenant} ${change.after.holder}`)?.timestamp ?? Number.POSITIVE_INFINITY;
  });
  const oldest = Math.min(...ages);
  return oldest === Number.POSITIVE_INFINITY ? null : oldest;
}
