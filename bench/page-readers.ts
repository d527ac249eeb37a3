/**
 * What open pages ask of a server, without their drawing: each follows the stream of events and reads the figures every
 * two seconds. In a process of their own, so that they do not slow down the load that the server is measured under.
 * Started by bench/page.ts: the message true opens the pages, false closes them; each answers with the bytes read so far.
 *
 *   node bench/page-readers.ts PORT PAGES
 */
import { Agent, get, type IncomingMessage } from "node:http";

const [port = 0, pages = 0] = process.argv.slice(2).map(Number);
/** As in dashboard/src/live: stream.ts and store.ts. */
const [batchMs, overviewMs] = [60, 2_000];
/** A browser keeps its connections. */
const agent = new Agent({ keepAlive: true });
let bytes = 0;

process.on("message", (isOpening) => {
  if (isOpening !== true) close();
  void (isOpening === true ? openAll() : Promise.resolve()).then(() => process.send?.(bytes));
});

const ends: (() => void)[] = [];

async function openAll(): Promise<void> {
  await Promise.all(Array.from({ length: pages }, openOne));
}

function close(): void {
  for (const end of ends.splice(0)) end();
}

async function openOne(): Promise<void> {
  const { sequence } = JSON.parse(await textOf("/v1/overview")) as { sequence: number };
  const stream = await ask(`/v1/events?since=${sequence}&batch_ms=${batchMs}`);
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  stream.on("error", () => undefined);
  const timer = setInterval(() => void textOf("/v1/overview").catch(() => undefined), overviewMs);
  ends.push(() => {
    clearInterval(timer);
    stream.destroy();
  });
}

async function textOf(path: string): Promise<string> {
  let text = "";
  for await (const chunk of await ask(path)) text += String(chunk);
  return text;
}

function ask(path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, agent }, resolve).once("error", reject);
  });
}
