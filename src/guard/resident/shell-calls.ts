/**
 * Calls of `bin/leasehold-hook`, a hook that is a shell script: HTTP on a socket of its own, because curl speaks that. The
 * address names tool and event, the headers hold what else a call consists of, and the status is the hook's exit code.
 */
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import { readInput } from "../hook-input.ts";
import type { HookResult } from "../hook-main.ts";
import { answerHook } from "../hook-run.ts";
import type { HelperCall } from "./client.ts";
import type { Sessions } from "./sessions.ts";

/** Of a path, a key and addresses of several servers. */
const headerBytesMax = 65_536;
/** As the script reads them; any other is the end of the hook with 2. */
const statusOf: Readonly<Record<number, number>> = { 0: 200, 1: 500, 2: 422 };
const prefix = "hook-";

export function createShellServer(sessions: Sessions): Server {
  const { createServer } = process.getBuiltinModule("node:http");
  return createServer({ maxHeaderSize: headerBytesMax }, (request, response) => {
    void answer(request, response, sessions).then(
      ({ code, stdout, stderr }) => {
        response.writeHead(statusOf[code] ?? 500, { "content-type": "text/plain", connection: "close" });
        response.end(code === 0 ? stdout : stderr);
      },
      () => response.destroy(),
    );
  });
}

async function answer(request: IncomingMessage, response: ServerResponse, sessions: Sessions): Promise<HookResult> {
  let isGone = false;
  response.once("close", () => {
    isGone = true;
  });
  const { input, problem } = await readInput(request);
  const call = callOf(request, input);
  const watcher = { isGone: () => isGone || hasEnded(call.pid), note: sessions.note.bind(sessions) };
  return await answerHook(call, problem, watcher);
}

/** A tool that gives up on its hook may end the script and not its curl. */
function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

function callOf({ url = "", headers }: IncomingMessage, input: string): HelperCall {
  const [, tool = "", event = ""] = url.split("/");
  const { cwd = "/", pid = "0", ...rest } = valuesIn(headers);
  const environment = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name.toUpperCase(), value]));
  return { args: [tool, event], input, cwd, environment, pid: Number(pid) };
}

/** Each stands in brackets, so that spaces at its ends are its own. Node reads headers as Latin-1; these are UTF-8. */
function valuesIn(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith(prefix) && typeof value === "string"
        ? [[name.slice(prefix.length), Buffer.from(value.slice(1, -1), "latin1").toString("utf8")]]
        : [],
    ),
  );
}
