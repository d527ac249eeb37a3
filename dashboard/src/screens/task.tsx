/** One task: why it waits, and its receipts as a chain, each checked here in the browser. */
import { useEffect, useState } from "preact/hooks";
import type { Receipt } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { isAbove } from "../api/session.ts";
import { verifyReceipt } from "../ledger/verify.ts";
import { changes } from "../live/store.ts";
import { cancelTask, redriveTask } from "../ui/actions.ts";
import { Badge, Facts, Json, Panel, ResourceName, Screen, TaskLink } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { Since } from "../ui/ticking.tsx";
import { moment } from "../ui/words.ts";
import { statusTones } from "./task-status.ts";

export function TaskScreen({ id }: { readonly id: string }) {
  const read = useReading(
    `task ${id}`,
    async () => {
      const [task, explained] = await Promise.all([
        call("get_task", { task_id: id }),
        call("explain_task", { task_id: id }).catch(() => null),
      ]);
      return {
        task,
        reasons: (explained?.waiting_for ?? []) as readonly { readonly kind: string; readonly detail: string }[],
      };
    },
    changes.tasks,
  );
  if (read.value === null)
    return <Screen title="Task">{read.error === null ? <p>Reading…</p> : <p class="error">{read.error}</p>}</Screen>;
  const { task, reasons } = read.value;
  const isOver = ["succeeded", "failed", "canceled"].includes(task.status);
  return (
    <Screen
      title={
        <>
          {task.task_type} <Badge tone={statusTones[task.status]}>{task.status.replace("_", " ")}</Badge>
        </>
      }
      tools={
        isAbove.value ? (
          <>
            {task.status === "dead" ? <ActionButton label="Redrive" action={redriveTask(id)} /> : null}
            {isOver ? null : <ActionButton label="Cancel" action={cancelTask(id)} />}
          </>
        ) : null
      }
    >
      <p class="lead">{task.task_summary}</p>
      <div class="columns">
        {isOver ? null : (
          <Panel title="Why it waits">
            <ul class="plain">
              {reasons.map(({ kind, detail }) => (
                <li key={`${kind} ${detail}`}>
                  <Badge tone="blocked">{kind.replaceAll("_", " ")}</Badge> {detail}
                </li>
              ))}
              {reasons.length === 0 ? <li class="quiet">It waits for nothing.</li> : null}
            </ul>
          </Panel>
        )}
        <Panel title="Facts">
          <Facts
            facts={[
              [
                "Id",
                <span key="id" class="mono">
                  {task.task_id}
                </span>,
              ],
              ["For", task.principal_ai],
              ["Created", moment(task.created_at)],
              ["Attempts", `${task.attempts} of ${task.max_attempts}, offered ${task.offers} times`],
              [
                "Worker",
                task.leases.map(({ worker_id }) => worker_id).join(", ") || (task.last_worker_id ?? "none yet"),
              ],
              ["Needs", task.requires.join(", ") || "any worker"],
              ["Priority", task.task_priority],
              [
                "After",
                task.depends_on.length === 0
                  ? "nothing"
                  : task.depends_on.map((other) => <TaskLink key={other} id={other} />),
              ],
              [
                "Obligation",
                task.obligation === null ? "none" : `${task.obligation.state}, with ${task.obligation.custodian}`,
              ],
              ["Ended", task.ended_at === null ? "no" : `${moment(task.ended_at)} ${task.end_reason ?? ""}`],
            ]}
          />
          {task.intents.map(({ predicate, resource }) => (
            <p key={resource}>
              <span class="quiet">{predicate}</span> <ResourceName name={resource} />
            </p>
          ))}
        </Panel>
        <Panel title="Receipts">
          <ol class="chain">
            {task.receipts.map((receipt) => (
              <ReceiptItem key={receipt.receipt_id} receipt={receipt} />
            ))}
            {task.receipts.length === 0 ? <li class="quiet">None yet.</li> : null}
          </ol>
        </Panel>
        <Panel title="Body and inputs">
          <details>
            <summary>Show</summary>
            <pre class="json">{task.task_body}</pre>
            <Json value={task.inputs} />
          </details>
          {task.progress === null ? null : (
            <>
              <h3>Progress</h3>
              <Json value={task.progress} />
            </>
          )}
        </Panel>
      </div>
    </Screen>
  );
}

function ReceiptItem({ receipt }: { readonly receipt: Receipt }) {
  const [verified, setVerified] = useState<boolean | null>(null);
  useEffect(() => {
    let isCurrent = true;
    void verifyReceipt(receipt).then((is) => isCurrent && setVerified(is));
    return () => {
      isCurrent = false;
    };
  }, [receipt]);
  return (
    <li class={`receipt ${receipt.phase}`}>
      <div class="line">
        <b>{receipt.phase}</b>
        <span class="quiet">
          <Since at={receipt.stored_at} /> ago
        </span>
        <Badge tone={verified === null ? "idle" : verified ? "working" : "lost"}>
          {verified === null ? "checking" : verified ? "verified" : "not verified"}
        </Badge>
      </div>
      <p>
        {receipt.status === "NA" ? "" : `${receipt.status}. `}
        {receipt.phase === "escalate"
          ? `${receipt.escalation_class} to ${receipt.escalation_to}: ${receipt.escalation_reason}`
          : ""}
        {receipt.outcome_text === "NA" ? "" : receipt.outcome_text}
      </p>
      <p class="quiet mono hash" title={receipt.hash}>
        {receipt.source_system} · #{receipt.sequence} · {receipt.hash.slice(0, 16)}…
      </p>
    </li>
  );
}
