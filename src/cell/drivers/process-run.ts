/**
 * `POST /run` of the process driver: `{"argv": ["/usr/bin/python3", "job.py"], "env": {…}, "stdin": "…"}`. The answer is
 * a stream of JSON lines: started, stdout and stderr (base64), exit. When the client disconnects, its process is ended.
 */
import type { ChildProcess } from "node:child_process";
import { realpathSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Admission } from "../admission.ts";
import type { Binding, Pass } from "../binding.ts";
import type { AccessFailure } from "../failure.ts";
import { answerFailure, tokenOf, whenOver } from "../http-listener.ts";
import type { ProcessTree } from "../process-tree.ts";

export interface Start {
  readonly child: ChildProcess;
  readonly tree: ProcessTree;
}

export interface RunPlace {
  readonly admission: Admission;
  readonly allow: readonly string[];
  readonly start: (
    command: readonly string[],
    environment: Readonly<Record<string, string>>,
    binding: Binding,
  ) => Start;
  readonly end: (tree: ProcessTree) => Promise<void>;
}

interface RunRequest {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
}

/** Several things can be what ends a run, and some come together. */
const finishing = new WeakSet<Start>();
const bodyBytesMax = 1_048_576;

export function serveRun(request: IncomingMessage, response: ServerResponse, place: RunPlace): void {
  const url = request.url?.split("?")[0];
  if (url !== "/run") return answerFailure(response, { code: "not_found", detail: "There is POST /run here." });
  if (request.method !== "POST") return answerFailure(response, { code: "method_not_allowed", detail: "Send POST." });
  // Checked before the body is read, so that only a lease's holder can make us keep one.
  const first = place.admission.admit(tokenOf(request), { operation: "run", program: () => null }, () => {});
  if ("code" in first && first.caveat !== "program") return answerFailure(response, first);
  if (!("code" in first)) first.close();
  readBody(request).then(
    (body) => run(body, request, response, place),
    () => answerFailure(response, { code: "payload_too_large", detail: `Send at most ${bodyBytesMax} bytes.` }),
  );
}

function run(body: string, request: IncomingMessage, response: ServerResponse, place: RunPlace): void {
  const asked = decode(body);
  if (asked === null) {
    const detail = 'Send {"argv": ["/usr/bin/program", "argument"], "env": {}, "stdin": ""}.';
    return answerFailure(response, { code: "invalid_request", detail });
  }
  const program = allowedProgram(asked.argv[0] ?? "", place.allow);
  if (typeof program !== "string") return answerFailure(response, program);
  const state: { started: Start | null } = { started: null };
  const pass = place.admission.admit(tokenOf(request), { operation: "run", program: () => program }, (failure) => {
    if (response.headersSent) response.end(line({ type: "end", error: failure.code }));
    else answerFailure(response, failure);
    if (state.started !== null) finish(pass, state.started, place);
  });
  if ("code" in pass) return answerFailure(response, pass);
  state.started = place.start([program, ...asked.argv.slice(1)], asked.env, pass.binding);
  attend(pass, state.started, asked.stdin, response, place);
}

/** Reports the process until it ends, and ends it when the client has gone. */
function attend(
  pass: Pass | AccessFailure,
  started: Start,
  stdin: string,
  response: ServerResponse,
  place: RunPlace,
): void {
  if ("code" in pass) return;
  const { child } = started;
  child.on("spawn", () => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write(line({ type: "started", pid: child.pid }));
  });
  child.on("error", (error) => {
    answerFailure(response, { code: "driver_failed", detail: `The program cannot be started: ${error.message}` });
    pass.close();
  });
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.on("data", (chunk: Buffer) => {
      if (!pass.take(chunk.length, "out")) return;
      if (response.write(line({ type: name, data: chunk.toString("base64") }))) return;
      child[name]?.pause();
      response.once("drain", () => child[name]?.resume());
    });
  }
  child.on("close", (code, signal) => {
    if (pass.cutBy === null) response.end(line({ type: "exit", code, signal }));
    finish(pass, started, place);
  });
  whenOver(response, () => finish(pass, started, place));
  child.stdin?.on("error", () => {});
  child.stdin?.end(stdin);
}

/** The pass is held until all that was started is gone; if that fails, the teardown of the binding will say so. */
function finish(pass: Pass | AccessFailure, started: Start, place: RunPlace): void {
  if ("code" in pass || started.child.pid === undefined || finishing.has(started)) return;
  finishing.add(started);
  place.end(started.tree).then(
    () => pass.close(),
    () => pass.close(),
  );
}

/** By its real path, so that no link stands for another program. */
function allowedProgram(name: string, allow: readonly string[]): string | AccessFailure {
  if (!name.startsWith("/")) return { code: "invalid_request", detail: "Name the program by its whole path." };
  let real: string;
  try {
    real = realpathSync(name);
  } catch {
    return { code: "not_found", detail: "The program does not exist." };
  }
  if (allow.includes("*") || allow.includes(real) || allow.includes(name)) return real;
  return { code: "program_not_allowed", detail: "This program may not be started here." };
}

function decode(body: string): RunRequest | null {
  try {
    const { argv, env = {}, stdin = "" } = JSON.parse(body) as Partial<Record<keyof RunRequest, unknown>>;
    const isText = (value: unknown): value is string => typeof value === "string" && !value.includes("\0");
    if (!Array.isArray(argv) || argv.length === 0 || !argv.every(isText) || typeof stdin !== "string") return null;
    if (typeof env !== "object" || env === null || !Object.entries(env).flat().every(isText)) return null;
    return { argv, env: env as Record<string, string>, stdin };
  } catch {
    return null;
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > bodyBytesMax) throw new Error("The body is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
