/**
 * The thin side of a hook: hands the call to the resident helper of this user and prints what that answers. A process
 * that only does this starts in half the time of one that does the work, and stays quick when the machine is busy.
 */
import { dirname, join } from "node:path";
import { stateFolder } from "../../trust/owner-token.ts";
import type { HookResult } from "../hook-main.ts";
import { writePrivate } from "../private-files.ts";
import type { Environment } from "../settings.ts";

const { lstatSync, statSync } = process.getBuiltinModule("node:fs");

export interface HelperCall {
  readonly args: readonly string[];
  readonly input: string;
  readonly cwd: string;
  readonly environment: Environment;
  /** Of the hook: its ancestors say which coding agent called it. */
  readonly pid: number;
}

/** What is not needed to decide is not handed over. */
const passed = /^(?:LEASEHOLD_\w+|GIT_\w+|XDG_\w+|CLAUDE_\w+|HOME|PATH|USER|TMPDIR)$/;
/** What a socket's name may have on every system. */
const pathBytesMax = 97;
/** A little more than the helper takes at most: it answers before. */
const answerMsMax = 42_000;
/** A newer version of the program must not talk to the helper of an older one. */
const protocol = 2;

/** Null where there can be none: the path is too long for a socket, the system has none, or it is switched off. */
export function socketPath(environment: Environment): string | null {
  const { LEASEHOLD_HELPER } = environment;
  const code = process.argv[1] ?? "";
  if (LEASEHOLD_HELPER === "off" || process.platform === "win32") return null;
  const path = join(stateFolder(environment), "helper", `${protocol}-${fingerprint(code)}`);
  return Buffer.byteLength(path) <= pathBytesMax ? path : null;
}

/** Of the program's place and age: after an update another helper answers. */
function fingerprint(path: string): string {
  let text = path;
  try {
    text += String(statSync(path).mtimeMs);
  } catch {
    // Its name must do.
  }
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  return (hash >>> 0).toString(36);
}

/**
 * Whether only this user can have put something there: a call names the key, so that it is not handed to a socket that others may
 * have put in the helper's place. A link is not followed.
 */
export function isPrivate(path: string): boolean {
  const found = lstatSync(dirname(path), { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}

/** Where the helper listens for hooks that are a shell script (shell-calls.ts). */
export function shellSocketPath(path: string): string {
  return `${path}.sh`;
}

/** For the script that started this hook: it finds the helper by itself the next time. */
export function noteShellSocket(environment: Environment): void {
  const { LEASEHOLD_HOOK: script = "" } = environment;
  const path = socketPath(environment);
  if (script === "" || path === null) return;
  try {
    writePrivate(join(dirname(path), `at${script.replaceAll("/", "+")}`), `${shellSocketPath(path)}\n`);
  } catch {
    // A name that is too long: this script goes by Node.
  }
}

/** Null if no helper answers: then the hook does the work itself. */
export function askHelper(call: HelperCall): Promise<HookResult | null> {
  const path = socketPath(call.environment);
  if (path === null || !isPrivate(path)) return Promise.resolve(null);
  const environment = Object.fromEntries(Object.entries(call.environment).filter(([name]) => passed.test(name)));
  return new Promise((resolve) => {
    const socket = process.getBuiltinModule("node:net").connect(path);
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => {
      resolve({ code: 2, stdout: "", stderr: "leasehold: the guard's helper gave no answer in time\n" });
      socket.destroy();
    }, answerMsMax);
    socket.once("connect", () => socket.write(`${JSON.stringify({ ...call, environment })}\n`));
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => undefined);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(readResult(Buffer.concat(chunks).toString("utf8")));
    });
  });
}

function readResult(text: string): HookResult | null {
  try {
    const { code, stdout, stderr } = JSON.parse(text) as Partial<HookResult>;
    if (typeof code === "number" && typeof stdout === "string" && typeof stderr === "string")
      return { code, stdout, stderr };
  } catch {
    // It ended before it answered.
  }
  return null;
}

/** For the hooks to come: this one does not wait for it. */
export function startHelper(environment: Environment): void {
  const [, program = ""] = process.argv;
  if (socketPath(environment) === null || program === "") return;
  const { spawn } = process.getBuiltinModule("node:child_process");
  const options = { detached: true, stdio: "ignore", cwd: "/", env: { ...environment } } as const;
  const child = spawn(process.execPath, [program, "guard", "hook", "helper"], options);
  child.on("error", () => undefined);
  child.unref();
}
