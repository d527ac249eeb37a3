/** Obligations that are not closed: who answers for what, since when, and what can be done about each. */
import type { Obligation } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { isAbove } from "../api/session.ts";
import { changes, overview } from "../live/store.ts";
import { answerObligation, recoverObligation } from "../ui/actions.ts";
import { Badge, Chips, Screen, Search, TaskLink } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { place } from "../ui/router.ts";
import { Left, Since } from "../ui/ticking.tsx";
import { VirtualList } from "../ui/virtual-list.tsx";

export function InboxScreen() {
  const { query } = place.value;
  const state = (query.get("state") ?? null) as Obligation["state"] | null;
  const custodian = query.get("custodian") ?? "";
  const read = useReading(
    `inbox ${state} ${custodian}`,
    () => call("list_obligations", { limit: 500, state, custodian: custodian === "" ? null : custodian }),
    changes.tasks,
  );
  const items = read.value?.obligations ?? [];
  const figures = overview.value?.obligations;
  const people = [...new Set(items.map((one) => one.custodian))].sort();
  return (
    <Screen title="Inbox" tools={<Search name="custodian" label="Whose inbox" suggestions={people} />}>
      <div class="strip">
        <Chips
          name="state"
          label="State"
          chips={[
            { value: "OPEN", label: "open", count: figures?.["OPEN"], tone: "working" },
            { value: "OVERDUE", label: "overdue", count: figures?.["OVERDUE"], tone: "lost" },
          ]}
        />
      </div>
      {read.error === null ? null : <p class="error">{read.error}</p>}
      <VirtualList
        items={items}
        rowHeight={64}
        keyOf={({ obligation_id }) => obligation_id}
        label="Obligations"
        empty={
          read.value === null ? (
            <p>Reading…</p>
          ) : (
            <>
              <h2>Nobody owes anything.</h2>
              <p>A task that is accepted is owed until its receipt says it is done. Escalations come here too.</p>
            </>
          )
        }
        row={(one) => <ObligationRow obligation={one} />}
      />
    </Screen>
  );
}

/** What ends it, in a few words. */
function wayOut({ state, foreign, status }: Obligation): string {
  if (foreign) return "its own system closes it with a receipt";
  if (state === "OVERDUE") return "its lease was lost: recover it for somebody else, or answer for it";
  return status === "leased" || status === "accepted" ? "its worker is on it" : "waits for an answer";
}

function ObligationRow({ obligation }: { readonly obligation: Obligation }) {
  const { state, custodian, task_id, task_type, task_summary, opened_at, foreign, status, principal_ai } = obligation;
  const { deadline_at: deadline } = obligation;
  const isFree = status !== "leased" && status !== "accepted";
  return (
    <div class="inbox-row">
      <Badge tone={state === "OVERDUE" ? "lost" : "working"}>{state.toLowerCase()}</Badge>
      <span class="task-what">
        <span>
          <b>{custodian}</b> owes {principal_ai} <b>{task_type}</b>{" "}
          {foreign ? <span class="mono">{task_id}</span> : <TaskLink id={task_id} />}
        </span>
        <span class="quiet">
          {task_summary === null ? "" : `${task_summary} · `}since <Since at={opened_at} />
          {deadline === null ? null : (
            <>
              , overdue in <Left until={Date.parse(deadline)} />
            </>
          )}
          {foreign ? " · of another system" : ""} · {wayOut(obligation)}
        </span>
      </span>
      {isAbove.value ? (
        <span class="actions">
          {state === "OVERDUE" ? (
            <ActionButton label="Recover" action={recoverObligation(obligation.obligation_id)} />
          ) : null}
          {isFree && !foreign ? <ActionButton label="Answer" action={answerObligation(task_id, custodian)} /> : null}
        </span>
      ) : null}
    </div>
  );
}
