/** Entry point of an SQLite thread: it takes calls one by one, and answers each in order. */
import { parentPort, workerData } from "node:worker_threads";
import { type FaultReport, reportOf, StoreFault } from "./faults.ts";
import type { Answer, Call, CallName, Handlers } from "./sqlite-calls.ts";
import { dataFiles } from "./sqlite-files.ts";

export interface ThreadData {
  readonly role: "writer" | "reader" | "copier";
  readonly folder: string;
}

const { role, folder } = workerData as ThreadData;
/** Opened by the first call, so that a failure is its answer. */
let handlers: Partial<Handlers<CallName>> | null = null;

/** Once writing has failed nothing is trusted any more, least of all a retried fsync (S2). */
let broken: FaultReport | null = null;
let turn: Promise<void> = Promise.resolve();

parentPort?.on("message", (call: Call) => {
  turn = turn.then(async () => parentPort?.postMessage(await answer(call)));
});

/** Each role imports only what it needs, because imports make the start of a thread slower. */
async function handlersFor(role: ThreadData["role"]): Promise<Partial<Handlers<CallName>>> {
  const files = dataFiles(folder);
  switch (role) {
    case "writer":
      return (await import("./sqlite-writer.ts")).openWriter(files);
    case "reader":
      return (await import("./sqlite-history.ts")).openReader(files);
    case "copier":
      return (await import("./sqlite-backup.ts")).createCopier(files);
  }
}

async function answer({ name, send }: Call): Promise<Answer> {
  if (broken !== null) return name === "close" ? { reply: null } : { fault: broken };
  try {
    handlers ??= await handlersFor(role);
    // Calls ties the types of a call and its handler, which a look-up by a variable name cannot express.
    const handler = handlers[name] as ((...send: readonly unknown[]) => unknown) | undefined;
    if (handler === undefined) throw new StoreFault(`the ${role} does not answer ${name}`);
    return { reply: await handler(...send) };
  } catch (error) {
    const fault = reportOf(explained(name, error));
    if (role === "writer") {
      broken = fault;
      closeBroken();
    }
    return { fault };
  }
}

/** An open transaction is rolled back with its connection. A failure here adds nothing to what is known. */
function closeBroken(): void {
  try {
    handlers?.close?.();
  } catch {}
}

function explained(name: CallName, error: unknown): unknown {
  if (error instanceof StoreFault || !(error instanceof Error) || !("errcode" in error)) return error;
  const code = Number(error.errcode);
  const what = explanations[code] ?? explanations[code % 256] ?? error.message;
  return new StoreFault(`${name} failed: ${what} (SQLite ${code}: ${error.message})`, { cause: error });
}

/** What SQLite's codes mean to an operator. */
const explanations: Readonly<Record<number, string>> = {
  5: "another program holds the database locked",
  8: "the database cannot be written to",
  10: "reading or writing the disk failed",
  11: "the database is damaged: restore a backup",
  13: "the disk is full",
  14: "the database cannot be opened",
  26: "the file is not a database",
  1034: "the disk did not confirm the write (fsync failed)",
};
