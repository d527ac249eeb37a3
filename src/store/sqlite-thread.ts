import { Worker } from "node:worker_threads";
import { faultFrom, StoreFault, storeClosed } from "./faults.ts";
import type { Answer, Call, CallName, Reply, Send } from "./sqlite-calls.ts";
import type { ThreadData } from "./sqlite-worker.ts";

interface Waiting {
  readonly resolve: (reply: unknown) => void;
  readonly reject: (fault: StoreFault) => void;
}

/** The TypeScript file in a checkout, or the JavaScript file of a build. */
const entry = new URL(import.meta.url.endsWith(".ts") ? "./sqlite-worker.ts" : "./sqlite-worker.js", import.meta.url);

/** The main thread's end of an SQLite thread. Calls are answered in order; all fail when the thread does. */
export class SqliteThread {
  readonly #worker: Worker;
  readonly #waiting: Waiting[] = [];
  #over: StoreFault | null = null;

  constructor(data: ThreadData) {
    this.#worker = new Worker(entry, { workerData: data, name: `leasehold-${data.role}`, execArgv: [] });
    this.#worker.unref(); // An idle thread does not keep the process alive; a call in flight does.
    this.#worker.on("message", (answer: Answer) => this.#take(answer));
    this.#worker.on("error", (cause) => this.#end(new StoreFault("a thread of SQLite died", { cause })));
    this.#worker.on("exit", () => this.#end(storeClosed("a thread of SQLite has ended")));
  }

  /** It has ended or died; a call would be refused. */
  get isOver(): boolean {
    return this.#over !== null;
  }

  call<Name extends CallName>(name: Name, ...send: Send<Name>): Promise<Reply<Name>> {
    if (this.#over !== null) return Promise.reject(this.#over);
    if (this.#waiting.length === 0) this.#worker.ref();
    const call: Call = { name, send };
    this.#worker.postMessage(call);
    // No closure and no `await`: either would keep what was sent in memory until the reply.
    const { promise, resolve, reject } = Promise.withResolvers<Reply<Name>>();
    // The reply is what the handler of the same name returned; Calls ties the two.
    this.#waiting.push({ resolve: resolve as Waiting["resolve"], reject });
    return promise;
  }

  /** Terminates the thread, whatever it is doing. */
  async stop(): Promise<void> {
    this.#worker.ref();
    await this.#worker.terminate();
  }

  #take(answer: Answer): void {
    const waiting = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#worker.unref();
    if ("fault" in answer) waiting?.reject(faultFrom(answer.fault));
    else waiting?.resolve(answer.reply);
  }

  #end(fault: StoreFault): void {
    this.#over ??= fault;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#over);
  }
}
