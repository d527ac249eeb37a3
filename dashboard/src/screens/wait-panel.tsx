/** An edge that was chosen: both manifests, and what would free it. */
import type { ComponentChildren } from "preact";
import type { Intent, Lease } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { isAbove } from "../api/session.ts";
import { changes } from "../live/store.ts";
import { cancelRequest, releaseLease, resetResource, revokeLease, unpauseAgent } from "../ui/actions.ts";
import { AgentLink, Panel, ResourceName, TaskLink } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { Left } from "../ui/ticking.tsx";
import { type Edge, nameOf, targetOf } from "./wait-edges.ts";

interface Props {
  readonly edge: Edge;
  readonly at: number;
  readonly close: () => void;
}

export function EdgePanel({ edge, at, close }: Props) {
  const { wait } = edge;
  return (
    <Panel
      title="What would free it"
      actions={
        <>
          {isAbove.value ? <WaysOut edge={edge} /> : null}
          <button type="button" class="button" onClick={close}>
            Close
          </button>
        </>
      }
    >
      <p>{wait.detail}</p>
      <div class="pair">
        <div>
          <h3>{wait.task_id === undefined ? <AgentLink id={nameOf(wait)} /> : <TaskLink id={wait.task_id} />} wants</h3>
          <Manifest intents={wait.intents} names={wait.resources} />
          <p class="quiet">{wait.purpose}</p>
        </div>
        <Target edge={edge} at={at} />
      </div>
    </Panel>
  );
}

/** What those above can do about it. */
function WaysOut({ edge }: { readonly edge: Edge }) {
  const { wait, blocker } = edge;
  const [resource] = wait.resources;
  const isFenced = wait.reason === "paused" || wait.reason === "resource_fenced";
  return (
    <>
      {blocker?.lease_id === undefined ? null : (
        <>
          <ActionButton label="Release" action={releaseLease(blocker.lease_id, blocker.resource)} />
          <ActionButton
            label="Revoke the lease"
            action={revokeLease(blocker.lease_id, blocker.agent_id, blocker.resource)}
          />
        </>
      )}
      {wait.request_id === undefined ? null : (
        <ActionButton label="Cancel the wait" action={cancelRequest(wait.request_id, nameOf(wait))} />
      )}
      {isFenced && resource !== undefined ? <ActionButton label="Reset" action={resetResource(resource)} /> : null}
      {wait.reason === "agent_paused" ? <ActionButton label="Unpause" action={unpauseAgent(nameOf(wait))} /> : null}
    </>
  );
}

function Target({ edge, at }: { readonly edge: Edge; readonly at: number }) {
  const { blocker, task } = edge;
  if (blocker === null)
    return (
      <div>
        <h3>{task === null ? targetOf(edge) : <TaskLink id={task} />}</h3>
        <p class="quiet">{task === null ? "has to act, or the time has to come." : "has to succeed first."}</p>
      </div>
    );
  const isHolder = blocker.lease_id !== undefined;
  return (
    <div>
      <h3>
        <AgentLink id={blocker.agent_id} /> {isHolder ? "holds" : "is before it in line for"}
      </h3>
      <ul class="plain">
        <li>
          <span class="quiet">{blocker.predicate}</span> <ResourceName name={blocker.resource} />
          {blocker.expires_in_ms === undefined ? null : (
            <span class="quiet">
              {" "}
              · ends without a heartbeat in <Left until={at + blocker.expires_in_ms} />
            </span>
          )}
        </li>
      </ul>
      <p class="quiet">{blocker.purpose}</p>
      <Rest agent={blocker.agent_id} lease={blocker.lease_id} />
    </div>
  );
}

/** What else the holder has: its whole manifest, so that one sees what a revocation would not touch. */
function Rest({ agent, lease }: { readonly agent: string; readonly lease: string | undefined }) {
  const read = useReading(
    `manifest ${agent}`,
    () => call("list_leases", { agent_id: agent, limit: 50 }),
    changes.waits,
  );
  const others = (read.value?.leases ?? []).filter(({ id }) => id !== lease);
  if (others.length === 0) return null;
  return (
    <>
      <h3>and beside it</h3>
      <ul class="plain">
        {others.slice(0, 8).map(({ id, predicate, resource }: Lease) => (
          <Line key={id} predicate={predicate} resource={resource} />
        ))}
        {others.length > 8 ? <li class="quiet">and {others.length - 8} more</li> : null}
      </ul>
    </>
  );
}

function Manifest({ intents, names }: { readonly intents: readonly Intent[]; readonly names: readonly string[] }) {
  return (
    <ul class="plain">
      {intents.map(({ predicate, resource, units }) => (
        <Line key={`${predicate} ${resource}`} predicate={predicate} resource={resource}>
          {units !== undefined && units !== null && units > 1 ? ` ${units} units` : ""}
        </Line>
      ))}
      {intents.length === 0 ? names.map((name) => <Line key={name} predicate="" resource={name} />) : null}
    </ul>
  );
}

interface LineProps {
  readonly predicate: string;
  readonly resource: string;
  readonly children?: ComponentChildren;
}

function Line({ predicate, resource, children }: LineProps) {
  return (
    <li>
      <span class="quiet">{predicate}</span> <ResourceName name={resource} />
      {children}
    </li>
  );
}
