/** A server's store in a separate process, for tests that kill it or make its disk fail. */
import { batch, endedLease, packedEvents } from "./contract-fixture.ts";
import { StoreFault } from "./faults.ts";
import { createSqliteStore } from "./sqlite.ts";

/** Rows that every batch changes together, so that half a batch is detected. */
export const rowsPerBatch = 200;

const [folder = "", filler = "0"] = process.argv.slice(2);
if (process.argv[1] === import.meta.filename) await commitUntilKilled();

/** Prints "open", then the number of each batch when it is durable, then what failed, if anything. */
async function commitUntilKilled(): Promise<void> {
  const store = createSqliteStore(folder);
  try {
    const { now } = await store.open();
    console.log("open");
    for (let number = now + 1; ; number += 1) {
      await store.commit(numberedBatch(number, Number(filler)));
      console.log(number);
    }
  } catch (error) {
    if (!(error instanceof StoreFault)) throw error;
    const later = await store.commit(batch({ now: 2 ** 50 })).catch((fault: unknown) => fault);
    console.log(`${error.code}: ${error.message}`);
    console.log(later instanceof StoreFault ? "refuses" : "goes on");
    await store.close();
  }
}

function numberedBatch(number: number, fillerBytes: number) {
  const body = JSON.stringify({ number, filler: "x".repeat(fillerBytes) });
  const puts = Array.from({ length: rowsPerBatch }, (_, index) => ({ n: index + 1, kind: "lease", body }));
  const events = packedEvents(number, 1);
  return batch({ now: number, puts, events, ended: [endedLease(number)] });
}
