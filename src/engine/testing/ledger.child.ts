/** A service that works off tasks until it is killed, in a process of its own: it says each receipt that it was given. */
import { openLedgerKey } from "../../ledger/key-file.ts";
import { createSqliteStore } from "../../store/sqlite.ts";
import { Engine } from "../engine.ts";
import { createTask, poll, submit } from "./test-tasks.ts";

const [folder = ""] = process.argv.slice(2);
const tasksAtOnce = 20;

if (process.argv[1] === import.meta.filename) await workUntilKilled();

async function workUntilKilled(): Promise<void> {
  const log = { info: () => undefined, warn: console.error, error: console.error };
  const engine = new Engine({
    store: createSqliteStore(folder),
    encodeEvent: ({ type }) => JSON.stringify({ type }),
    log,
    ledgerKey: () => openLedgerKey(folder),
  });
  await engine.start();
  const work = async (worker: number): Promise<never> => {
    for (;;) {
      await engine.command(createTask());
      const { reply } = await engine.command(poll(`code.${worker}`));
      const leaseId = reply.type === "offers" ? reply.offers[0]?.lease.id : undefined;
      if (leaseId === undefined) continue;
      for (const receipt of [
        { phase: "accepted", leaseId },
        { phase: "complete", leaseId, status: "success" },
      ]) {
        const { receipts } = await engine.command(submit(receipt));
        for (const { receipt, hash } of receipts) console.log(`${receipt.sequence} ${hash}`);
      }
    }
  };
  await Promise.all(Array.from({ length: tasksAtOnce }, (_, worker) => work(worker)));
}
