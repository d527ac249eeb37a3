/** One agent: where it is in its unit of work, what it holds and asks for, its checkpoint, and its last signs of life. */
import type { Agent, Digest, Lease, ObservationUpdate, OpenRequest, Task } from "../../../src/sdk/wire.ts";
import { call, Refusal } from "../api/client.ts";
import { isAbove, isReader } from "../api/session.ts";
import { concerns } from "../live/event-text.ts";
import { changes, lanes, lanesVersion, recent, recentVersion } from "../live/store.ts";
import { cancelRequest, pauseAgent, releaseLease, revokeAgent, revokeLease, unpauseAgent } from "../ui/actions.ts";
import { AgentLink, Badge, Facts, Json, Panel, ResourceName, Screen } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { hrefOf } from "../ui/router.ts";
import { Left, ShrinkingFill, Since } from "../ui/ticking.tsx";
import { activityWords, count, moment, pauseWords, timeOfDay } from "../ui/words.ts";
import { eventWords } from "./event-words.ts";
import { StateMachine } from "./state-machine.tsx";
import { statusTones } from "./task-status.ts";

export function AgentScreen({ id }: { readonly id: string }) {
  const read = useReading(`agent ${id}`, () => readAgent(id), changes.agents);
  lanesVersion.value;
  const lane = lanes.get(id);
  const may = isAbove.value;
  if (read.value === null)
    return <Screen title={id}>{read.error === null ? <p>Reading…</p> : <p class="error">{read.error}</p>}</Screen>;
  const { agent, leases, requests, digest, observation, tasks } = read.value;
  return (
    <Screen
      title={id}
      aside={
        lane === undefined ? null : (
          <p class={`verdict ${lane.activity}`}>
            <span class="dot" aria-hidden="true" /> {activityWords[lane.activity]} · <Since at={lane.since} />
          </p>
        )
      }
      tools={
        may ? (
          <>
            {agent.paused_by_operator ? (
              <ActionButton label="Unpause" action={unpauseAgent(id)} />
            ) : (
              <ActionButton label="Pause" action={pauseAgent(id)} />
            )}
            <ActionButton label="Revoke all leases" action={revokeAgent(id)} />
          </>
        ) : null
      }
    >
      <div class="columns two">
        <div class="column">
          <State agent={agent} leases={leases} />
          <Panel title={`Holds ${count(leases.length)}`}>
            <ul class="plain">
              {leases.map((lease) => (
                <LeaseLine key={lease.id} lease={lease} may={may} />
              ))}
              {leases.length === 0 ? <li class="quiet">Nothing.</li> : null}
            </ul>
          </Panel>
          <Panel title={`Asks for ${count(requests.length)}`}>
            <ul class="plain">
              {requests.map((request) => (
                <RequestLine key={request.request_id} request={request} may={may} />
              ))}
              {requests.length === 0 ? <li class="quiet">Nothing.</li> : null}
            </ul>
          </Panel>
        </div>
        <div class="column">
          <Meanwhile observation={observation} />
          <Checkpoint digest={digest} />
          <Tasks id={id} tasks={tasks} />
          <SignsOfLife id={id} />
        </div>
      </div>
    </Screen>
  );
}

async function readAgent(id: string) {
  const orNull = (error: unknown): null => {
    if (error instanceof Refusal && error.status < 500) return null;
    throw error;
  };
  const [agent, leases, requests, digest, observation, own, worked] = await Promise.all([
    call("get_agent", { agent_id: id }),
    call("list_leases", { agent_id: id, limit: 200 }),
    call("list_requests", { agent_id: id, limit: 50 }),
    isReader.value ? null : call("get_digest", { agent_id: id }).catch(orNull),
    call("get_observation", { agent_id: id }),
    call("list_tasks", { principal_ai: id, limit: 20 }).catch(orNull),
    call("list_tasks", { worker_id: id, limit: 20 }).catch(orNull),
  ]);
  const tasks = new Map([...(worked?.tasks ?? []), ...(own?.tasks ?? [])].map((task) => [task.task_id, task]));
  return { agent, leases: leases.leases, requests: requests.requests, digest, observation, tasks: [...tasks.values()] };
}

function State({ agent, leases }: { readonly agent: Agent; readonly leases: readonly Lease[] }) {
  const labels = Object.entries(agent.labels).map(([name, value]) => `${name}=${value}`);
  // A heartbeat moves the end to a whole TTL from then.
  const beat = Math.max(...leases.map(({ expires_at, ttl }) => Date.parse(expires_at) - ttl));
  const paused = agent.paused_for === undefined ? null : (pauseWords[agent.paused_for] ?? agent.paused_for);
  return (
    <Panel title="Where it is">
      <StateMachine state={agent.state} />
      <Facts
        facts={[
          ...(paused === null ? [] : [["Why it is paused", paused] as const]),
          [
            "Last heartbeat",
            leases.length === 0 ? (
              "it holds nothing to keep alive"
            ) : (
              <>
                <Since key="beat" at={beat} /> ago
              </>
            ),
          ],
          ["Registered", moment(agent.registered_at)],
          ["Its age counts from", moment(agent.priority_timestamp)],
          ["Died since its last grant", count(agent.attempts)],
          ["Instance", `epoch ${agent.epoch}`],
          ["Labels", labels.join(", ") || "none"],
          ...(agent.registered_by == null ? [] : [["Belongs to key", agent.registered_by] as const]),
        ]}
      />
    </Panel>
  );
}

function LeaseLine({ lease, may }: { readonly lease: Lease; readonly may: boolean }) {
  const endsAt = Date.parse(lease.expires_at);
  return (
    <li class="lease-line">
      <span class={`thin-bar ${lease.state}`}>
        <ShrinkingFill endsAt={endsAt} ttl={lease.ttl} />
      </span>
      <div class="line">
        <span>
          <span class="quiet">{lease.predicate}</span> <ResourceName name={lease.resource} />{" "}
          {lease.units > 1 ? `${lease.units} units ` : ""}
          <span class="quiet">
            <Left until={endsAt} /> left · fence {lease.fence}
            {lease.state === "ACTIVE" ? "" : ` · ${lease.state.toLowerCase()}`}
            {lease.coordinate === undefined ? "" : ` · at ${lease.coordinate}`}
            {lease.purpose === null ? "" : ` · ${lease.purpose}`}
          </span>
        </span>
        {may ? (
          <span class="actions">
            <ActionButton label="Release" action={releaseLease(lease.id, lease.resource)} />
            <ActionButton label="Revoke" action={revokeLease(lease.id, lease.agent_id, lease.resource)} />
          </span>
        ) : null}
      </div>
    </li>
  );
}

function RequestLine({ request, may }: { readonly request: OpenRequest; readonly may: boolean }) {
  const others = request.blocked_by_total - request.blocked_by.length;
  return (
    <li class="line">
      <span>
        {request.intents.map(({ predicate, resource }) => (
          <span key={`${predicate} ${resource}`}>
            <span class="quiet">{predicate}</span> <ResourceName name={resource} />{" "}
          </span>
        ))}
        <span class="quiet">
          {request.state === "STANDBY" ? "stands by" : request.state === "BINDING" ? "being set up" : "waits"} since{" "}
          <Since at={request.submitted_at} />
          {request.position === undefined ? "" : `, ${request.position}. in line`}
          {request.blocked_by.length === 0 ? "" : ", behind "}
        </span>
        {request.blocked_by.map(({ agent_id, lease_id, request_id }) => (
          <span key={lease_id ?? request_id}>
            <AgentLink id={agent_id} />{" "}
          </span>
        ))}
        {others > 0 ? <span class="quiet">and {others} more</span> : null}
      </span>
      {may ? <ActionButton label="Cancel" action={cancelRequest(request.request_id, request.agent_id)} /> : null}
    </li>
  );
}

/** A4: the update that it would get if it went on now. */
function Meanwhile({ observation }: { readonly observation: ObservationUpdate }) {
  const { changes: made, since, truncated } = observation;
  if (made.length === 0 && !truncated) return null;
  return (
    <Panel title={`What others did meanwhile: ${count(made.length)}${truncated ? " and more" : ""}`}>
      <p class="quiet">
        It has not seen these since {timeOfDay(since)}, and gets them as an observation update when it goes on.
      </p>
      <ul class="plain log">
        {made.toReversed().map(({ resource, predicate, agent_id, at, version }) => (
          <li key={`${at} ${resource} ${predicate}`}>
            <time class="mono quiet">{timeOfDay(at)}</time> <AgentLink id={agent_id} />{" "}
            <span class="quiet">{predicate}</span> <ResourceName name={resource} />
            {version === undefined ? null : <span class="quiet"> now {version}</span>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Checkpoint({ digest }: { readonly digest: Digest | null }) {
  if (digest === null)
    return (
      <Panel title="Checkpoint">
        <p class="quiet">
          {isReader.value
            ? "A checkpoint may hold anything, so readers are not shown it."
            : "It has saved none. One that is saved (PUT …/digest) lets another instance go on after a crash."}
        </p>
      </Panel>
    );
  const { assumptions, intent_backlog: backlog } = digest;
  return (
    <Panel title="Checkpoint">
      <Facts
        facts={[
          [
            "Saved",
            <>
              <Since key="at" at={digest.saved_at} /> ago
            </>,
          ],
          ["Named", digest.checkpoint_id],
          ["Goes on at", digest.resume_point],
          ["At resume", digest.resolution_strategy],
          [
            "Still to acquire",
            backlog.length === 0
              ? "nothing"
              : backlog.map(({ predicate, resource }) => (
                  <div key={`${predicate} ${resource}`}>
                    <span class="quiet">{predicate}</span> <ResourceName name={resource} />
                  </div>
                )),
          ],
          [
            "Assumes",
            assumptions.length === 0
              ? "nothing"
              : assumptions.map(({ resource, version }) => (
                  <div key={resource}>
                    <ResourceName name={resource} /> is {version}
                  </div>
                )),
          ],
        ]}
      />
      <details>
        <summary>Context</summary>
        <Json value={digest.context} />
      </details>
    </Panel>
  );
}

function Tasks({ id, tasks }: { readonly id: string; readonly tasks: readonly Task[] }) {
  return (
    <Panel
      title={`Tasks of it, or worked on by it: ${tasks.length}`}
      actions={<a href={hrefOf(["tasks"], { principal: id })}>All</a>}
    >
      <ul class="plain">
        {tasks.slice(0, 8).map((task) => (
          <li key={task.task_id} class="line">
            <a href={hrefOf(["tasks", task.task_id])}>
              {task.task_type} {task.task_summary}
            </a>
            <Badge tone={statusTones[task.status]}>{task.status.replace("_", " ")}</Badge>
          </li>
        ))}
        {tasks.length === 0 ? <li class="quiet">None.</li> : null}
      </ul>
    </Panel>
  );
}

function SignsOfLife({ id }: { readonly id: string }) {
  recentVersion.value;
  const own = recent
    .filter((event) => concerns(event, id))
    .slice(-30)
    .reverse();
  return (
    <Panel title="Last signs of life" actions={<a href={hrefOf(["events"], { agent: id })}>All events</a>}>
      <ol class="plain log">
        {own.map((event) => (
          <li key={event.seq}>
            <time class="mono quiet">{timeOfDay(event.at)}</time>{" "}
            <span class={`event-type ${event.type.replace(".", "-")}`}>{event.type}</span> {eventWords(event)}
          </li>
        ))}
        {own.length === 0 ? <li class="quiet">None since this page was opened.</li> : null}
      </ol>
    </Panel>
  );
}
