/** One agent: where it is in its unit of work, what it holds and asks for, its checkpoint, and its last signs of life. */
import type { Lease } from "../../../src/sdk/wire.ts";
import { call, Refusal } from "../api/client.ts";
import { isAbove } from "../api/session.ts";
import { changes, lanes, lanesVersion, recent, recentVersion } from "../live/store.ts";
import { cancelRequest, pauseAgent, releaseLease, revokeAgent, revokeLease, unpauseAgent } from "../ui/actions.ts";
import { Badge, Facts, Json, Left, Panel, ResourceName, Screen, Since } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { hrefOf } from "../ui/router.ts";
import { activityWords, moment, timeOfDay } from "../ui/words.ts";
import { eventWords } from "./event-words.ts";

export function AgentScreen({ id }: { readonly id: string }) {
  const read = useReading(`agent ${id}`, () => readAgent(id), changes.agents);
  lanesVersion.value;
  const lane = lanes.get(id);
  const may = isAbove.value;
  if (read.value === null)
    return <Screen title={id}>{read.error === null ? <p>Reading…</p> : <p class="error">{read.error}</p>}</Screen>;
  const { agent, leases, requests, digest } = read.value;
  return (
    <Screen
      title={
        <>
          {id} {lane === undefined ? null : <Badge tone={lane.activity}>{activityWords[lane.activity]}</Badge>}
        </>
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
      <div class="columns">
        <Panel title="State">
          <StateMachine state={agent.state} />
          <Facts
            facts={[
              ["Registered", moment(agent.registered_at)],
              ["Epoch", agent.epoch],
              ["Older than others by its timestamp", moment(agent.priority_timestamp)],
              ["Died since its last grant", agent.attempts],
              [
                "Labels",
                Object.entries(agent.labels)
                  .map(([name, value]) => `${name}=${value}`)
                  .join(", ") || "none",
              ],
              ["Belongs to key", agent.registered_by ?? "none"],
            ]}
          />
        </Panel>
        <Panel title={`Holds ${leases.length}`}>
          <ul class="plain">
            {leases.map((lease) => (
              <LeaseLine key={lease.id} lease={lease} may={may} />
            ))}
            {leases.length === 0 ? <li class="quiet">Nothing.</li> : null}
          </ul>
        </Panel>
        <Panel title={`Asks for ${requests.length}`}>
          <ul class="plain">
            {requests.map((request) => (
              <li key={request.request_id} class="line">
                <span>
                  {request.intents.map(({ predicate, resource }) => (
                    <span key={`${predicate} ${resource}`}>
                      <span class="quiet">{predicate}</span> <ResourceName name={resource} />{" "}
                    </span>
                  ))}
                  <span class="quiet">
                    {request.state.toLowerCase()} since <Since at={request.submitted_at} />, behind{" "}
                  </span>
                  {request.blocked_by.map(({ agent_id, lease_id, request_id }) => (
                    <a key={lease_id ?? request_id} href={hrefOf(["agents", agent_id])}>
                      {agent_id}{" "}
                    </a>
                  ))}
                </span>
                {may ? <ActionButton label="Cancel" action={cancelRequest(request.request_id, id)} /> : null}
              </li>
            ))}
            {requests.length === 0 ? <li class="quiet">Nothing.</li> : null}
          </ul>
        </Panel>
        <Panel title="Checkpoint">
          {digest === null ? (
            <p class="quiet">It has saved none.</p>
          ) : (
            <>
              <Facts
                facts={[
                  ["Saved", <Since key="at" at={digest.saved_at} />],
                  ["Named", digest.checkpoint_id],
                  ["Goes on at", digest.resume_point],
                  ["At resume", digest.resolution_strategy],
                  ["Still to acquire", digest.intent_backlog.length],
                  [
                    "Assumes",
                    digest.assumptions.map(({ resource, version }) => `${resource} is ${version}`).join("; ") ||
                      "nothing",
                  ],
                ]}
              />
              <details>
                <summary>Context</summary>
                <Json value={digest.context} />
              </details>
            </>
          )}
        </Panel>
        <SignsOfLife id={id} />
      </div>
    </Screen>
  );
}

async function readAgent(id: string) {
  const [agent, leases, requests, digest] = await Promise.all([
    call("get_agent", { agent_id: id }),
    call("list_leases", { agent_id: id, limit: 200 }),
    call("list_requests", { agent_id: id, limit: 50 }),
    call("get_digest", { agent_id: id }).catch((error: unknown) => {
      if (error instanceof Refusal && error.status < 500) return null;
      throw error;
    }),
  ]);
  return { agent, leases: leases.leases, requests: requests.requests, digest };
}

function LeaseLine({ lease, may }: { readonly lease: Lease; readonly may: boolean }) {
  return (
    <li class="line">
      <span>
        <span class="quiet">{lease.predicate}</span> <ResourceName name={lease.resource} />{" "}
        <span class="quiet">fence {lease.fence} ·</span> <Left until={Date.parse(lease.expires_at)} /> left{" "}
        <span class="quiet">{lease.purpose}</span>
      </span>
      {may ? (
        <span class="actions">
          <ActionButton label="Release" action={releaseLease(lease.id, lease.resource)} />
          <ActionButton label="Revoke" action={revokeLease(lease.id, lease.agent_id, lease.resource)} />
        </span>
      ) : null}
    </li>
  );
}

/** A1, as a picture: the way of a unit of work from left to right. */
const boxes: readonly (readonly [state: string, x: number, y: number])[] = [
  ["PLANNING", 0, 0],
  ["ACQUIRING", 1, 0],
  ["EXECUTING", 2, 0],
  ["VERIFYING", 3, 0],
  ["COMPLETED", 3, 1],
  ["PAUSED", 1, 1],
  ["ABORTED", 2, 1],
  ["DIE_RESTART", 0, 1],
];
const arrows = ["M104,21h20", "M228,21h20", "M352,21h20", "M424,38v18", "M176,38v18", "M228,66l20,-32"];

function StateMachine({ state }: { readonly state: string }) {
  return (
    <svg class="machine" viewBox="0 0 490 92" role="img" aria-label={`It is in ${state}.`}>
      {arrows.map((path) => (
        <path key={path} d={path} />
      ))}
      {boxes.map(([name, x, y]) => (
        <g key={name} class={name === state ? "here" : ""}>
          <rect x={x * 124 + 2} y={y * 52 + 4} width={102} height={34} rx={6} />
          <text x={x * 124 + 53} y={y * 52 + 25} text-anchor="middle">
            {name}
          </text>
        </g>
      ))}
    </svg>
  );
}

function SignsOfLife({ id }: { readonly id: string }) {
  recentVersion.value;
  const own = recent
    .filter((event) => JSON.stringify(event).includes(`"agent_id":${JSON.stringify(id)}`))
    .slice(-30)
    .reverse();
  return (
    <Panel title="Last events" actions={<a href={hrefOf(["events"], { agent: id })}>All</a>}>
      <ol class="plain log">
        {own.map((event) => (
          <li key={event.seq}>
            <time class="mono quiet">{timeOfDay(event.at)}</time> {eventWords(event)}
          </li>
        ))}
        {own.length === 0 ? <li class="quiet">None lately.</li> : null}
      </ol>
    </Panel>
  );
}
