/** What is beside the tree: one resource with its holders and its queue, or the cells that serve resources. */
import type { CellView, Lease, Wait } from "../../../src/sdk/wire.ts";
import { isAbove } from "../api/session.ts";
import { fenceResource, releaseLease, resetResource, revokeLease } from "../ui/actions.ts";
import { AgentLink, Badge, Facts, Panel, ResourceName, TaskLink } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { Left, ShrinkingFill, Since } from "../ui/ticking.tsx";
import { count } from "../ui/words.ts";
import type { TreeNode } from "./resources.tsx";
import { reasonWords } from "./wait-edges.ts";

const listedMax = 50;

export function unitsOf({ leases }: TreeNode): number {
  return leases.reduce((sum, { units }) => sum + units, 0);
}

export function NodePanel({ node }: { readonly node: TreeNode }) {
  const { declared } = node;
  const may = isAbove.value && node.depth > 0;
  return (
    <Panel
      title={node.name}
      actions={
        may ? (
          declared?.state === "FENCED" ? (
            <ActionButton label="Reset" action={resetResource(node.name)} />
          ) : (
            <ActionButton label="Fence" action={fenceResource(node.name)} />
          )
        ) : null
      }
    >
      <Declared node={node} />
      <h3>Held by</h3>
      <ul class="plain">
        {node.leases.slice(0, listedMax).map((lease) => (
          <HolderLine key={lease.id} lease={lease} />
        ))}
        {node.leases.length === 0 ? (
          <li class="quiet">{node.held === 0 ? "Nobody." : `Nobody; ${count(node.held)} below it are held.`}</li>
        ) : null}
      </ul>
      <h3>Queue</h3>
      <ol class="plain">
        {node.waits.slice(0, listedMax).map((wait) => (
          <QueueLine key={wait.request_id ?? wait.task_id ?? wait.agent_id} wait={wait} />
        ))}
        {node.waits.length === 0 ? (
          <li class="quiet">
            {node.waiting === 0 ? "Empty." : `Empty; ${count(node.waiting)} wait for what is below it.`}
          </li>
        ) : null}
      </ol>
    </Panel>
  );
}

function Declared({ node }: { readonly node: TreeNode }) {
  const { declared } = node;
  if (declared === null) return null;
  const { state, capacity, cell, driver, hardware = [], reason, fault, fenced_at: fencedAt } = declared;
  return (
    <>
      <Facts
        facts={[
          [
            "State",
            <>
              <Badge tone={state === "READY" ? "working" : state === "FENCED" ? "lost" : "blocked"}>
                {state.toLowerCase()}
              </Badge>{" "}
              {reason} {fencedAt === null ? null : <Since at={fencedAt} />}
            </>,
          ],
          ...(cell === null ? [] : [["Cell", `${cell}${driver == null ? "" : `, by ${driver}`}`] as const]),
          ...(hardware.length === 0 ? [] : [["Runs on", hardware.join(", ")] as const]),
          ...(fault == null ? [] : [["Fault", fault] as const]),
        ]}
      />
      {capacity === null ? null : (
        <p class="units">
          <meter min={0} max={capacity} value={unitsOf(node)} aria-label="Units in use" /> {unitsOf(node)} of {capacity}{" "}
          units in use
        </p>
      )}
    </>
  );
}

function HolderLine({ lease }: { readonly lease: Lease }) {
  const endsAt = Date.parse(lease.expires_at);
  return (
    <li class="lease-line">
      <span class={`thin-bar ${lease.state}`}>
        <ShrinkingFill endsAt={endsAt} ttl={lease.ttl} />
      </span>
      <div class="line">
        <span>
          <AgentLink id={lease.agent_id} /> <span class="quiet">{lease.predicate}</span>
          {lease.units > 1 ? ` ${lease.units} units` : ""}{" "}
          <span class="quiet">
            <Left until={endsAt} /> left
            {lease.state === "ACTIVE" ? "" : ` · ${lease.state.toLowerCase()}`}
            {lease.purpose === null ? "" : ` · ${lease.purpose}`}
          </span>
          {lease.coordinate === undefined ? null : <div class="mono quiet">bound to {lease.coordinate}</div>}
        </span>
        {isAbove.value ? (
          <span class="actions">
            <ActionButton label="Release" action={releaseLease(lease.id, lease.resource)} />
            <ActionButton label="Revoke" action={revokeLease(lease.id, lease.agent_id, lease.resource)} />
          </span>
        ) : null}
      </div>
    </li>
  );
}

function QueueLine({ wait }: { readonly wait: Wait }) {
  return (
    <li>
      {wait.task_id === undefined ? <AgentLink id={wait.agent_id ?? ""} /> : <TaskLink id={wait.task_id} />}{" "}
      <span class="quiet">
        {reasonWords(wait.reason)} · <Since at={wait.since} />
        {wait.purpose === null ? "" : ` · ${wait.purpose}`}
      </span>
    </li>
  );
}

export function CellList({ cells }: { readonly cells: readonly CellView[] }) {
  if (cells.length === 0)
    return (
      <Panel title="Choose a resource">
        <p class="quiet">Its holders and its queue are shown here.</p>
        <p class="quiet">
          No cell is enrolled. <code>leasehold cell --help</code> says how a machine serves its GPUs, ports and memory.
        </p>
      </Panel>
    );
  return (
    <Panel title={`${cells.length} ${cells.length === 1 ? "cell serves" : "cells serve"} resources`}>
      {cells.map(({ cell, state, connected, resources, since, reason, withdrawn }) => (
        <section key={cell} class="cell">
          <h3>
            {cell}{" "}
            <Badge tone={state === "READY" && connected ? "working" : "lost"}>
              {state === "READY" && !connected ? "not connected here" : state.toLowerCase()}
            </Badge>{" "}
            {withdrawn ? <Badge tone="blocked">withdrawn</Badge> : null}
          </h3>
          <p class="quiet">
            {reason} since <Since at={since} />
          </p>
          <ul class="plain">
            {resources.map((one) => (
              <li key={one.resource} class="line">
                <ResourceName name={one.resource} />
                <span class="quiet">
                  {one.driver} {one.capacity === null ? "" : `${one.capacity} units`}
                </span>
                <Badge tone={one.ready ? "working" : "lost"}>{one.ready ? "ready" : "not ready"}</Badge>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </Panel>
  );
}
