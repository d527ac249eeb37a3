/**
 * The resident helper: one process for each user, started by the first hook that finds none. It answers hooks, and renews
 * what living sessions hold. It ends when nothing has called for a while, or another has taken its place. If it fails, each
 * hook does its work itself.
 */
import type { Server, Socket } from "node:net";
import { dirname } from "node:path";
import { answerHook } from "../hook-run.ts";
import { PayloadProblem } from "../payload.ts";
import type { Environment } from "../settings.ts";
import { type HelperCall, isPrivate, shellSocketPath, socketPath } from "./client.ts";
import { Sessions } from "./sessions.ts";
import { createShellServer } from "./shell-calls.ts";

const { lstatSync, mkdirSync, renameSync, rmSync } = process.getBuiltinModule("node:fs");

const tickMs = 1_000;
const idleMsMax = 600_000;
/** A write of a very large file comes with its content, twice quoted. */
const callBytesMax = 160 * 2 ** 20;
/** A hook sends its call at once; one that was stopped in the middle of it is not waited for. */
const callMsMax = 30_000;

export async function serveHelper(environment: Environment): Promise<never> {
  const path = socketPath(environment);
  if (path === null) process.exit(0);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (!isPrivate(path) || (await answers(path))) process.exit(0);
  const sessions = new Sessions();
  const { createServer } = process.getBuiltinModule("node:net");
  const server = createServer((socket) => answer(socket, sessions));
  const shellServer = createShellServer(sessions);
  await listen(shellServer, shellSocketPath(path));
  const inode = await listen(server, path);
  let lastCall = performance.now();
  for (const one of [server, shellServer]) {
    one.on("connection", () => {
      lastCall = performance.now();
    });
  }
  // The tools' folders may be removed while this runs.
  process.chdir("/");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, tickMs));
    sessions.tick();
    const isIdle = sessions.isEmpty && performance.now() - lastCall > idleMsMax;
    if (!isIdle && inodeOf(path) === inode) continue;
    if (inodeOf(path) === inode) for (const one of [path, shellSocketPath(path)]) rmSync(one, { force: true });
    await sessions.settled();
    process.exit(0);
  }
}

/** Of two that start at once the last one stays: the other sees that its socket is gone. */
async function listen(server: Server, path: string): Promise<bigint | null> {
  const temporary = `${path}.${process.pid}`;
  rmSync(temporary, { force: true });
  const before = process.umask(0o177);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(temporary, resolve);
  });
  process.umask(before);
  renameSync(temporary, path);
  return inodeOf(path);
}

function inodeOf(path: string): bigint | null {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino ?? null;
}

/** Whether a helper listens there already; a file that was left over refuses. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = process.getBuiltinModule("node:net").connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

function answer(socket: Socket, sessions: Sessions): void {
  const chunks: Buffer[] = [];
  let size = 0;
  let isGone = false;
  let isRead = false;
  socket.on("error", () => undefined);
  socket.setTimeout(callMsMax, () => isRead || socket.destroy());
  socket.once("close", () => {
    isGone = true;
  });
  socket.on("data", (chunk: Buffer) => {
    if (isRead) return;
    size += chunk.length;
    if (size > callBytesMax) return void socket.destroy();
    chunks.push(chunk);
    if (chunk.at(-1) !== 0x0a) return;
    isRead = true;
    const watcher = { isGone: () => isGone, note: sessions.note.bind(sessions) };
    const call = readCall(Buffer.concat(chunks).toString("utf8"));
    if (call === null) return void socket.destroy();
    void answerHook(call, null, watcher).then(
      (result) => socket.end(JSON.stringify(result)),
      // Unanswered, the hook does it itself.
      () => socket.destroy(),
    );
  });
}

function readCall(text: string): HelperCall | null {
  try {
    const { args, input, cwd, environment, pid } = JSON.parse(text) as Partial<HelperCall>;
    if (!Array.isArray(args) || typeof input !== "string" || typeof cwd !== "string") throw new PayloadProblem("call");
    if (environment === undefined || typeof pid !== "number") throw new PayloadProblem("call");
    return { args, input, cwd, environment, pid };
  } catch {
    return null;
  }
}
