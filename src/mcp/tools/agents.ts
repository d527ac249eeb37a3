/** An agent's own life: registering, checkpoints, taking work up again. */
import type { Body } from "../control-plane.ts";
import { listIn, named, textIn, updateSentence } from "../sentences.ts";
import { toolsIn } from "../tool.ts";

const stateSentence = "{agent_id} is in {state}.";

/** A2: what the checkpoint itself says is to be done with it. */
function strategySentence({ digest }: Body): string {
  const { resolution_strategy: strategy } = (digest ?? {}) as { readonly resolution_strategy?: unknown };
  switch (strategy) {
    case "ABORT":
      return " Its strategy is ABORT: do not go on; call transition_agent with ABORTED.";
    case "MERGE":
      return " Its strategy is MERGE: bring your work in line with what changed, then acquire its intent_backlog again.";
    default:
      return " Acquire its intent_backlog again, then go on from resume_point.";
  }
}

export const agentTools = toolsIn("leases", [
  {
    name: "register_agent",
    title: "Register as an agent",
    description:
      "Call this first, once: it gives you the agent_id that the other tools act for, and your place in line. Give an " +
      "agent_id of your own to be found again after a restart; if that agent exists you take it over, its leases " +
      "included, and the older instance is shut out: call verify_all then, before you work. Keep agent_token: some keys need it for every call. " +
      "`leasehold mcp` registers by itself, so there you need this only to choose a name.",
    sentence: "You are {agent_id}, epoch {epoch}; send this agent_id with the other calls.",
  },
  {
    name: "checkpoint",
    title: "Save a checkpoint",
    operation: "save_digest",
    description:
      "Saves where you are, in your own words and any JSON, so that you or another instance can go on after a crash, a " +
      "DIE or a pause with `resume`. Save one before risky or long steps. It replaces the one before.",
    sentence: "Checkpoint {checkpoint_id} is saved; call resume to go on from it.",
  },
  {
    name: "read_checkpoint",
    title: "Read a checkpoint",
    operation: "get_digest",
    description: "Shows the last checkpoint of an agent, without taking the agent over as `resume` does.",
    sentence: (body) => `Checkpoint ${textIn(body, "checkpoint_id")}: ${textIn(body, "resume_point").slice(0, 200)}`,
  },
  {
    name: "resume",
    title: "Resume from a checkpoint",
    effect: "adds",
    operation: "resume_agent",
    description:
      "Call this after a restart: gives you the checkpoint, a new agent_token, and what happened meanwhile to the " +
      "resources you relied on. Name in `assumptions` the versions you count on. assumption_failed: the checkpoint is " +
      "dropped; read observation_update and plan again. Then acquire again what you need.",
    sentence: (body) => {
      const judged = listIn<{ resource: string; outcome: string }>(body, "assumptions");
      const unknown = judged.filter(({ outcome }) => outcome === "unverified");
      const read =
        unknown.length === 0 ? "" : ` Unverified, read again: ${named(unknown, ({ resource }) => resource)}.`;
      return `Taken up, epoch ${textIn(body, "epoch")}.${updateSentence(body)}${read}${strategySentence(body)}`;
    },
  },
  {
    name: "transition_agent",
    title: "Change an agent's state",
    effect: "ends",
    description:
      "Tells where you are: VERIFYING, COMPLETED, ABORTED, PLANNING … COMPLETED, ABORTED and PLANNING release all that " +
      "you hold and end your waits; call it with COMPLETED when your whole work is done. EXECUTING after a pause tells " +
      "what others changed meanwhile.",
    sentence: (body) => `${textIn(body, "agent_id")} is in ${textIn(body, "state")}.${updateSentence(body)}`,
  },
  {
    name: "announce_restart",
    title: "Announce a restart",
    operation: "restart_agent",
    description:
      "Call this before you are restarted on purpose: leases that run out meanwhile are kept back for 15 s. Afterwards " +
      "call verify_all, then heartbeat_leases.",
    sentence: stateSentence,
  },
  {
    name: "get_agent",
    title: "Show an agent",
    description: "Shows an agent's state, age in line and labels; yours if you name none.",
    sentence: stateSentence,
  },
]);
