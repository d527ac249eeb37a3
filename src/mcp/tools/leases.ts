/** Acquiring, waiting for, keeping and giving back leases: what an agent does most. */

import type { Input } from "../../protocol/operation.ts";
import { agentId, paging, resource } from "../../protocol/schema/fields.ts";
import { integer, optional, type TProperties } from "../../protocol/schema/schema.ts";
import type { Lease } from "../../sdk/wire.ts";
import type { ControlPlane } from "../control-plane.ts";
import { limits } from "../limits.ts";
import { counted, leasesOf, listIn, named, updateSentence, verdictSentence } from "../sentences.ts";
import { filled, operationNamed, toolsIn } from "../tool.ts";

export function holdField(defaultMs: number) {
  return optional(
    integer({
      maximum: limits.holdMsMax,
      description: `How long the answer may be held, in ms; ${defaultMs} if left out, 0 to be answered at once.`,
    }),
  );
}

function fieldsOf(operation: string): TProperties {
  return operationNamed(operation).input.properties;
}

/** The operation's field with other words. */
function described(operation: string, field: string, description: string) {
  return optional({ ...fieldsOf(operation)[field], description });
}

/** What a model leaves out is filled for somebody who cannot keep time. */
function patient(input: Input, { defaults }: ControlPlane): Input {
  const { wait_timeout_ms: waitMs } = input;
  const isNow = waitMs === 0;
  return filled(input, {
    hold_ms: limits.holdMsDefault,
    ttl_ms: defaults.ttlMs,
    wait_timeout_ms: defaults.waitTimeoutMs,
    // Where it is not to wait, it does not stand by either.
    standby_ms: isNow ? 0 : limits.standbyMsDefault,
  });
}

export const leaseTools = toolsIn("leases", [
  {
    name: "acquire_leases",
    title: "Acquire leases",
    effect: "adds",
    operation: "acquire",
    description:
      "Call this BEFORE you change, delete, rename or rely on anything that other agents may touch: files, tables, " +
      "ports, services. Name everything the step needs in one call; all of it is granted, or nothing. Resources are " +
      "`TYPE:/path`, such as `FILE:/shop/src/auth.ts`; `FILE:/shop/src/**` is a folder and all below it. Predicates: " +
      "MUTATES to change, CONSUMES to read what must not change meanwhile, DELETES, RENAMES (with `to`), PROVIDES to " +
      "create or offer, DEPENDS_ON for what must stay. Say in `purpose` what for: others see it. " +
      "GRANTED: go on, and call release_leases when done. STANDBY or WAIT: you hold nothing; call await_request with the " +
      "request_id until it is GRANTED. DIE: undo what you changed, call release_leases, and ask " +
      "again: then it waits. PAUSED: nothing helps until somebody acts; stop and tell your user. Never touch what was not GRANTED.",
    fields: {
      ...fieldsOf("acquire"),
      hold_ms: holdField(limits.holdMsDefault),
      ttl_ms: described("acquire", "ttl_ms", "How long the leases last without a heartbeat; best left out."),
      wait_timeout_ms: described(
        "acquire",
        "wait_timeout_ms",
        "How long to stay in line, over several calls; 300000 if left out, 0 to not wait.",
      ),
    },
    input: patient,
    keyField: "request_id",
    registers: true,
    sentence: verdictSentence,
  },
  {
    name: "await_request",
    title: "Wait for a request",
    operation: "get_request",
    description:
      "Call this after acquire_leases answered WAIT or STANDBY, with its request_id, and again as long as it does; each " +
      "call is answered within 45 s. Do not pause between calls: a grant that nobody collects goes to the next in line. " +
      "GRANTED gives you the leases; wait_timeout or request_canceled mean that the request is over, so acquire again.",
    fields: { ...fieldsOf("get_request"), hold_ms: holdField(limits.holdMsDefault) },
    input: (input) => filled(input, { hold_ms: limits.holdMsDefault }),
    sentence: verdictSentence,
  },
  {
    name: "cancel_request",
    title: "Stop waiting",
    description: "Call this if you no longer want what you wait for, so that those behind you get their turn.",
    sentence: () => "The request is over; it holds nothing.",
  },
  {
    name: "release_leases",
    title: "Release leases",
    operation: "release_all",
    description:
      "Call this as soon as a step is done, and after DIE: others wait for it. Without lease_ids everything you hold is " +
      "released. Give in `versions`, by lease id, what a changed resource is now (a hash will do), so that those who " +
      "resume later see that it changed. Calling it again changes nothing.",
    sentence: (body) => {
      const ended = listIn<{ id: string; state: string }>(body, "leases");
      return ended.length === 0
        ? "You held nothing."
        : `Released: ${named(ended, ({ id, state }) => `${id} ${state}`)}.`;
    },
  },
  {
    name: "heartbeat_leases",
    title: "Keep leases alive",
    operation: "heartbeat_all",
    description:
      "Extends your leases by their TTL from now. Every call that you make over HTTP does it too, and `leasehold mcp` " +
      "does it by itself; call it during long work without other calls, and with `activity` after you have changed " +
      "what has an idle timeout. STOP work on everything that `lost` names: it belongs to others now.",
    sentence: (body) => {
      const lost = listIn<{ id: string; state: string }>(body, "lost");
      const kept = listIn<Lease>(body, "leases");
      const held = kept.length === 0 ? "You hold nothing" : `Held: ${leasesOf(kept)}`;
      const ended = lost.length === 0 ? "" : `LOST, stop there: ${named(lost, ({ id, state }) => `${id} ${state}`)}. `;
      return `${ended}${held}.${updateSentence(body)}`;
    },
  },
  {
    name: "verify_all",
    title: "Verify leases",
    description:
      "Call this when you are not sure what you hold: after a pause, a restart, a lost connection. It tells the truth " +
      "about each lease; only what is ACTIVE may be relied on, all else is gone. Without lease_ids it shows what is live.",
    sentence: (body) => {
      const leases = listIn<{ id: string; state: string; resource?: string }>(body, "leases");
      if (leases.length === 0) return "You hold nothing.";
      return `${named(leases, ({ id, state, resource: name }) => `${id} ${state}${name === undefined ? "" : ` ${name}`}`)}.`;
    },
  },
  {
    name: "who_holds",
    title: "Who holds this?",
    operation: "list_leases",
    description:
      "Shows who holds what overlaps with a resource, for what purpose and for how long, without taking anything. Use it " +
      "to plan; it promises nothing for the next moment: only acquire_leases does.",
    fields: { resource, ...paging },
    sentence: (body) => {
      const leases = listIn<Lease>(body, "leases");
      if (leases.length === 0) return "Nobody holds it.";
      return `${named(leases, (lease) => `${lease.agent_id} holds ${leasesOf([lease])}`)}.`;
    },
  },
  {
    name: "list_leases",
    title: "List leases",
    description:
      "Lists leases of the whole tenant, narrowed by agent, state or resource; ended ones too if you ask for them.",
    sentence: (body) => counted(body, "leases", "lease", "No lease matches."),
  },
  {
    name: "who_waits",
    title: "Who waits for whom?",
    operation: "list_requests",
    description: "Lists the requests that wait, in order of arrival, each with what stands in its way.",
    fields: { agent_id: optional(agentId), ...paging },
    sentence: (body) => counted(body, "requests", "waiting request", "Nobody waits."),
  },
  {
    name: "release_lease",
    title: "Release one lease",
    description: "Gives one lease back, by its id. release_leases does it for several, or all.",
    sentence: "{id} is {state}.",
  },
  {
    name: "heartbeat_lease",
    title: "Keep one lease alive",
    operation: "heartbeat",
    description: "Extends one lease by its TTL from now. An error means that it is no longer yours: stop.",
    sentence: (body) => `Extended: ${leasesOf([body as unknown as Lease])}.${updateSentence(body)}`,
  },
  {
    name: "transfer_lease",
    title: "Hand a lease over",
    effect: "adds",
    description:
      "Hands one of your leases to another agent without anybody getting in between; from then on it is not yours. Give in " +
      "`version` what the resource is now, if you changed it.",
    sentence: "{id} belongs to {agent_id}, with fence {fence}.",
  },
  {
    name: "downgrade_lease",
    title: "Weaken a lease",
    description:
      "Weakens a lease without letting go, so that others may read: MUTATES becomes CONSUMES, for instance. Give in " +
      "`version` what the resource is now, if you changed it.",
    sentence: "{id} is {predicate} now.",
  },
  {
    name: "report_violation",
    title: "Own up to a write past a lease",
    effect: "adds",
    description:
      "If you find that you, or a command that you ran, changed something that another agent holds: name their lease " +
      "(who_holds shows it) and what was changed. No lease changes; the holder is notified, so that it reads the resource again.",
    sentence: "{agent_id}, who holds {resource}, is notified.",
  },
  {
    name: "revoke_leases",
    title: "Take leases away",
    set: "operating",
    effect: "ends",
    operation: "revoke",
    description:
      "For supervisors and operators: takes leases away from their holders, one by id, all of an agent, or all under a " +
      "resource prefix. The holders may be in the middle of work; ask your user first.",
    sentence: "{revoked} taken away.",
  },
]);
