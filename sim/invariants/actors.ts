/** Who may: an older instance changes nothing any more (A3), and nobody is wounded by somebody younger (W7). */
import { type Step, violated } from "./step.ts";

export function checkActor({ command, reply, changes, store }: Step): void {
  if (command === null || reply === null || command.type === "register_agent") return;
  const { role, agentId, epoch } = command.actor;
  if (role !== "agent" || agentId === null || reply.type === "refused") return;
  // As it was before the step: a command may itself have made the epoch a new one.
  const change = changes.find(
    (one) => one.kind === "agent" && one.after?.id === agentId && one.after.tenant === command.tenant,
  );
  const agent =
    change?.kind === "agent" && change.before !== null
      ? change.before
      : store.agent.get(`${command.tenant} ${agentId}`);
  if (agent !== undefined && agent.epoch !== epoch) {
    violated("A3", `an instance of epoch ${epoch} was heard, and the agent is at ${agent.epoch}`, command, reply);
  }
}

export function checkWounds({ command, events, store }: Step): void {
  for (const event of events) {
    if ((event.type !== "lease.revoked" && event.type !== "lease.closing") || event.reason !== "wounded") continue;
    if (event.type === "lease.revoked" && event.lease.cell !== null) continue; // Wounded when it began to close.
    if (command?.type !== "acquire") violated("W7", "a lease was wounded, and nobody asked for anything", event);
    const requester = store.agent.get(`${command.tenant} ${command.agentId}`);
    const holder = store.agent.get(`${event.tenant} ${event.lease.agentId}`);
    if (requester === undefined || holder === undefined || requester.priority >= holder.priority) {
      violated("W7", "a lease was wounded by somebody who is not older", command, event.lease);
    }
  }
}
