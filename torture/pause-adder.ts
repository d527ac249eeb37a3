/**
 * A process of the pause test: adds to the set under a lease, again and again, until its standard input ends. It
 * checks nothing between reading and writing, so only the fence prevents a lost update after a pause.
 */
import { createClient, LeaseholdError } from "../src/sdk/index.ts";

/** Refused: a higher fence was seen. */
class Stale extends Error {}

const [, , url = "", setUrl = "", resource = "", name = ""] = process.argv;
const client = createClient({ url });
let isOver = false;
process.stdin.resume();
process.stdin.once("end", () => {
  isOver = true;
});

for (let count = 0; !isOver; count++) {
  try {
    await client.withLease(resource, ({ fenceOf }) => add(`${name}-${count}`, fenceOf(resource)), {
      ttlMs: 2_000,
      timeoutMs: 5_000,
      retryLost: "never",
    });
  } catch (error) {
    if (!(error instanceof LeaseholdError) && !(error instanceof Stale)) throw error;
  }
}
await client.close();
process.exit(0);

async function add(item: string, fence: number): Promise<void> {
  const read = await fetch(`${setUrl}/?fence=${fence}`);
  if (read.status === 409) throw new Stale("read");
  const items = (await read.json()) as readonly string[];
  await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 100));
  const body = JSON.stringify({ fence, items: [...items, item], added: item });
  const written = await fetch(setUrl, { method: "PUT", body });
  if (written.status === 409) throw new Stale("write");
}
