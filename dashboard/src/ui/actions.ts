/** What those above may do, each with its consequence in words. All of them are in the audit log. */
import type { TaskFilterInput } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import type { Action, Field } from "./confirm.tsx";
import { count } from "./words.ts";

const reason: Field = { name: "reason", label: "Why; it is shown to the holder and kept in the audit log" };

export function revokeLease(leaseId: string, agent: string, resource: string): Action {
  return {
    title: "Revoke the lease",
    consequence: `${agent} loses ${resource} at once and is notified. What it has half done stays as it is. The next in the queue gets it.`,
    isDangerous: true,
    fields: [reason],
    run: async ({ reason: why = "" }) => {
      const { revoked } = await call("revoke", { lease_id: leaseId, reason: why });
      return `${count(revoked)} ${revoked === 1 ? "lease was" : "leases were"} revoked.`;
    },
  };
}

export function revokeAgent(agent: string): Action {
  return {
    title: "Revoke all its leases",
    consequence: `${agent} loses everything it holds, at once. Waiters get what becomes free.`,
    isDangerous: true,
    fields: [reason],
    run: async ({ reason: why = "" }) => {
      const { revoked } = await call("revoke", { agent_id: agent, reason: why });
      return `${count(revoked)} leases were revoked.`;
    },
  };
}

export function releaseLease(leaseId: string, resource: string): Action {
  return {
    title: "Release the lease",
    consequence: `${resource} becomes free as if its holder had finished. If the holder still works on it, it is refused from then on.`,
    run: async () => {
      await call("release_lease", { lease_id: leaseId });
      return undefined;
    },
  };
}

export function cancelRequest(requestId: string, agent: string): Action {
  return {
    title: "Cancel the wait",
    consequence: `${agent} leaves the queue and is answered that its request was canceled. It keeps what it holds.`,
    run: async () => {
      await call("cancel_request", { request_id: requestId });
      return undefined;
    },
  };
}

export function pauseAgent(agent: string): Action {
  return {
    title: "Pause the agent",
    consequence: `${agent} keeps what it holds, and gets nothing new until it is unpaused.`,
    run: async () => {
      await call("pause_agent", { agent_id: agent });
      return undefined;
    },
  };
}

export function unpauseAgent(agent: string): Action {
  return {
    title: "Unpause the agent",
    consequence: `${agent} may acquire again.`,
    run: async () => {
      await call("unpause_agent", { agent_id: agent });
      return undefined;
    },
  };
}

export function fenceResource(resource: string): Action {
  return {
    title: "Fence the resource",
    consequence: `Nothing is leased on ${resource} until it is reset, and what is held on it is revoked now.`,
    isDangerous: true,
    fields: [reason],
    run: async ({ reason: why = "" }) => {
      await call("fence_resource", { resource, reason: why });
      return undefined;
    },
  };
}

export function resetResource(resource: string): Action {
  return {
    title: "Reset the resource",
    consequence: `Its cell probes ${resource}; where it has none, your word counts that it is clean. Then it can be leased again.`,
    run: async () => {
      await call("reset_resource", { resource });
      return undefined;
    },
  };
}

export function cancelTask(taskId: string): Action {
  return {
    title: "Cancel the task",
    consequence:
      "A queued task ends at once. A worker that has it is notified with its next heartbeat, and its result no longer counts.",
    isDangerous: true,
    fields: [{ ...reason, isOptional: true }],
    run: async ({ reason: why = "" }) => {
      await call("cancel_task", { task_id: taskId, reason: why === "" ? null : why });
      return undefined;
    },
  };
}

export function redriveTask(taskId: string): Action {
  return {
    title: "Redrive the task",
    consequence: "It leaves the dead letters, and is offered to workers again with its attempts at zero.",
    run: async () => {
      await call("redrive_task", { task_id: taskId });
      return undefined;
    },
  };
}

export function recoverObligation(obligationId: string): Action {
  return {
    title: "Give it a new custodian",
    consequence: "The obligation is OPEN again, and the named one answers for it from now on.",
    fields: [{ name: "custodian", label: "New custodian" }, reason],
    run: async ({ custodian = "", reason: why = "" }) => {
      await call("recover_obligation", { obligation_id: obligationId, custodian, reason: why });
      return undefined;
    },
  };
}

/** R5: the custodian answers with a receipt; its words are the outcome. */
export function answerObligation(taskId: string, custodian: string): Action {
  return {
    title: "Answer and close",
    consequence: `A receipt "complete" is stored in the name of ${custodian}, and the task is over. Receipts cannot be taken back.`,
    fields: [
      { name: "status", label: "Outcome", options: ["success", "failure", "canceled"] },
      { name: "text", label: "Answer", isLong: true },
    ],
    run: async ({ status = "success", text = "" }) => {
      await call("submit_receipt", {
        phase: "complete",
        task_id: taskId,
        source_system: custodian,
        status,
        outcome_kind: "response_text",
        outcome_text: text,
      });
      return "The answer is in the ledger.";
    },
  };
}

export function resignLeader(leader: string, serverId: string): Action {
  return {
    title: "Let another server lead",
    consequence: `${leader} finishes what is under way and resigns; another server leads within about a second. Leases, waits and tasks stay as they are. Connections to ${leader} are closed, and clients connect again by themselves.`,
    isDangerous: true,
    run: async () => {
      const { epoch, shards } = await call("resign_leader", { server_id: serverId });
      return shards.length === 1
        ? `The leader of epoch ${epoch} resigns.`
        : `The server resigns the shards ${shards.join(", ")}.`;
    },
  };
}

/** All that match, decided and counted on the server. */
export function bulk(
  kind: "cancel" | "redrive",
  filter: TaskFilterInput,
  words: string,
  began: (id: string) => void,
): Action {
  return {
    title: kind === "cancel" ? "Cancel all that match" : "Redrive all that match",
    consequence:
      kind === "cancel"
        ? `Every task that is ${words} now is canceled, on this page or not. The server does it in portions and shows how far it is.`
        : `Every dead letter that is ${words} now is offered to workers again. The server does it in portions and shows how far it is.`,
    isDangerous: kind === "cancel",
    run: async () => {
      const started = await call(kind === "cancel" ? "cancel_tasks" : "redrive_tasks", { filter });
      began(started.operation_id);
      return "It has begun.";
    },
  };
}
