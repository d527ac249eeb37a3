/** The ledger: its signed head, every receipt checked in the browser, and an export. */
import { signal } from "@preact/signals";
import type { LedgerHead, OperationAnswers, Receipt } from "../../../src/sdk/wire.ts";
import { call, wordsOf } from "../api/client.ts";
import { genesisHash, verifyHead, verifyReceipt } from "../ledger/verify.ts";
import { changes } from "../live/store.ts";
import { Badge, Facts, Panel, Screen, TaskLink } from "../ui/bits.tsx";
import { useReading } from "../ui/reading.ts";
import { Since } from "../ui/ticking.tsx";
import { VirtualList } from "../ui/virtual-list.tsx";
import { count, moment } from "../ui/words.ts";

interface Check {
  readonly isRunning: boolean;
  readonly done: number;
  readonly total: number;
  readonly words: string;
  readonly isGood: boolean | null;
}

const check = signal<Check | null>(null);

export function LedgerScreen() {
  const head = useReading("head", () => call("get_ledger_head", {}), changes.tasks);
  const latest = useReading(
    "latest",
    async () => (await call("list_receipts", { limit: 200, sort: "desc" })).receipts,
    changes.tasks,
  );
  const running = check.value;
  return (
    <Screen
      title="Ledger"
      tools={
        <>
          <button
            type="button"
            class="button solid"
            disabled={running?.isRunning === true}
            onClick={() => void verifyAll()}
          >
            Verify here
          </button>
          <button type="button" class="button" onClick={() => void exportAll()}>
            Export
          </button>
        </>
      }
    >
      {running === null ? null : (
        <p class="progress" role="status">
          <progress max={Math.max(1, running.total)} value={running.done} aria-label="Receipts checked" />{" "}
          {running.isGood === null ? null : (
            <Badge tone={running.isGood ? "working" : "lost"}>{running.isGood ? "verified" : "not verified"}</Badge>
          )}{" "}
          {running.words}
        </p>
      )}
      {head.error === null ? null : <p class="error">{head.error}</p>}
      {head.value === null ? null : <Head head={head.value} />}
      <VirtualList
        items={latest.value ?? []}
        rowHeight={44}
        keyOf={({ receipt_id }) => receipt_id}
        label="Receipts, newest first"
        empty={<p>{latest.value === null ? "Reading…" : "No receipt yet."}</p>}
        row={(receipt) => (
          <div class="ledger-row">
            <span class="mono quiet">#{receipt.sequence}</span>
            <Badge
              tone={
                receipt.phase === "escalate" ? "waiting_for_person" : receipt.phase === "complete" ? "done" : "working"
              }
            >
              {receipt.phase}
            </Badge>
            <span>
              {receipt.source_system} {receipt.status === "NA" ? "" : receipt.status} <TaskLink id={receipt.task_id} />
            </span>
            <span class="mono quiet hash">{receipt.hash.slice(0, 12)}…</span>
            <span class="quiet">
              <Since at={receipt.stored_at} />
            </span>
          </div>
        )}
      />
    </Screen>
  );
}

function Head({ head }: { readonly head: LedgerHead }) {
  return (
    <Panel title="Head">
      <Facts
        facts={[
          ["Receipts", count(head.sequence)],
          ["Signed", moment(head.at)],
          [
            "By key",
            <span key="key" class="mono">
              {head.key_id}
            </span>,
          ],
          [
            "Hash",
            <span key="hash" class="mono hash">
              {head.hash}
            </span>,
          ],
        ]}
      />
      <p class="quiet">
        Save this head elsewhere from time to time: <code>leasehold ledger verify --anchor FILE</code> then proves that
        nothing was cut off since.
      </p>
    </Panel>
  );
}

async function verifyAll(): Promise<void> {
  try {
    const head = await call("get_ledger_head", {});
    const signature = await verifyHead(head);
    if (signature === false) return conclude(head, 0, "The head's signature is wrong.", false);
    let [previous, done] = [genesisHash, 0];
    for await (const receipts of pages()) {
      for (const receipt of receipts) {
        if (receipt.sequence > head.sequence) break;
        if (done === 0 && receipt.sequence > 1) previous = receipt.previous_hash;
        if (receipt.previous_hash !== previous)
          return conclude(head, done, `Receipt ${receipt.sequence} does not follow the one before.`, false);
        if (!(await verifyReceipt(receipt)))
          return conclude(head, done, `Receipt ${receipt.sequence} was changed.`, false);
        previous = receipt.hash;
        done++;
      }
      check.value = {
        isRunning: true,
        done,
        total: head.sequence,
        words: `${count(done)} of ${count(head.sequence)}`,
        isGood: null,
      };
    }
    if (previous !== head.hash)
      return conclude(head, done, "The last receipt is not the one that the head names.", false);
    const signed =
      signature === null
        ? "the signature could not be checked here (it takes https or this machine)"
        : "the head's signature is right";
    conclude(head, done, `${count(done)} receipts follow each other, and ${signed}.`, true);
  } catch (error) {
    check.value = { isRunning: false, done: 0, total: 1, words: wordsOf(error), isGood: false };
  }
}

function conclude(head: LedgerHead, done: number, words: string, isGood: boolean): void {
  check.value = { isRunning: false, done, total: head.sequence, words, isGood };
}

async function* pages(): AsyncGenerator<readonly Receipt[]> {
  let cursor: string | null = null;
  do {
    const answer: OperationAnswers["list_receipts"] = await call("list_receipts", { limit: 500, sort: "asc", cursor });
    yield answer.receipts;
    cursor = answer.next_cursor;
  } while (cursor !== null);
}

/** Lines of JSON, each as the API shows it, with the head last. */
async function exportAll(): Promise<void> {
  const lines: string[] = [];
  for await (const receipts of pages()) for (const receipt of receipts) lines.push(`${JSON.stringify(receipt)}\n`);
  lines.push(`${JSON.stringify(await call("get_ledger_head", {}))}\n`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  link.download = "ledger.jsonl";
  link.click();
  URL.revokeObjectURL(link.href);
}
