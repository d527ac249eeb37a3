/** Runs the server until a signal stops it. Its flags are the server's settings. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { environmentName, flagName, loadConfig, logLevels, names, settings } from "../../server/config/config.ts";
import type { Call, Command, Flags } from "../command.ts";
import { checkDataPlace } from "../data-folder.ts";
import { exitCodes } from "../exit-codes.ts";
import { createLog } from "../log.ts";
import { Failure } from "../problem.ts";
import { isLeasehold } from "../reaching.ts";
import { onStopSignals } from "../stop-signals.ts";

const flags: Flags = {
  ...Object.fromEntries(
    names.map((name) => {
      const { sign, usual, words } = settings[name];
      const isList = Array.isArray(usual);
      const hasDefault = !isList && usual !== null && sign !== null;
      const text = `${words}${hasDefault ? ` [${usual}]` : ""}; ${environmentName(name)}`;
      const form = { ...(sign !== null && { sign }), ...(isList && { many: true as const }) };
      return [flagName(name), { words: text, ...form, ...(name === "logLevel" && { choices: logLevels }) }];
    }),
  ),
  "accept-clock-jump": { words: "leases may end by a wall clock that has jumped ahead by more than a day" },
  config: { sign: "FILE", words: 'a JSON file with settings, such as {"port": 7200}; LEASEHOLD_CONFIG' },
};

export const serveCommand: Command = {
  name: "serve",
  summary: "runs the server",
  usage: "[--port N] [--data DIR] [--host ADDRESS] …",
  about: `Each setting can also come from the environment, under the name at the end of its line, or from the file that
--config names. A flag goes before the environment, and that before the file. \`npm start -- [flags]\` is the same; other
commands, such as \`keys\`, \`backup\` and \`restore\`, can follow \`npm start --\` too.`,
  flags,
  offline: true,
  examples: [
    ["leasehold serve", "on 127.0.0.1:7117, with its data in ~/.leasehold/data"],
    ["leasehold serve --port 7200 --data /var/lib/leasehold", "elsewhere"],
    ["leasehold serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem", "beyond this machine, with keys"],
    ["leasehold serve --owner-only", "on a machine that others use too"],
    ["leasehold serve --store memory", "to try things out; nothing is kept"],
    ["leasehold serve --store postgres://db/leasehold --master-key-file key", "one of several servers on one database"],
  ],
  run: (call) => serve(call, settingsIn(call)),
};

export const commands: readonly Command[] = [serveCommand];

type Given = Readonly<Record<string, string | readonly string[]>>;

/** Until a signal. `onListening` says more than where it listens; its result is called at the end. */
export async function serve(
  call: Pick<Call, "environment" | "isSet" | "out">,
  given: Given,
  { mayAccept = true, onListening }: ServeOptions = {},
): Promise<undefined> {
  // The data holds the secret that agents' tokens are made with: it is for this user alone.
  process.umask(0o077);
  const config = loadConfig(given, call.environment);
  if (config.store === "sqlite") {
    checkDataPlace(config.data);
    noteFormerPlace(call.out, config.data);
  }
  const [log, { startServer }, { version }] = await Promise.all([
    createLog(config.logLevel, call.environment),
    import("../../server/start.ts"),
    import("../../server/config/version.ts"),
  ]);
  // Before anything is opened, so that an early signal is not missed.
  const { promise: stop, resolve } = Promise.withResolvers<NodeJS.Signals>();
  onStopSignals(resolve, () => log.warn("a second signal: ends at once"));
  const accepted = mayAccept && call.isSet("accept-clock-jump") ? { clockJumpMsMax: Number.POSITIVE_INFINITY } : {};
  const starting = startServer({ ...config, ...accepted, log }).catch((error: unknown) => explainAddress(error));
  const server = await Promise.race([starting, stop]);
  if (typeof server === "string") {
    // As after a kill: what is committed is there at the next start.
    log.info({ signal: server }, "stopped before it was ready");
    return;
  }
  const { url } = server.address;
  // Without the address, which may have a password in it.
  const [store = ""] = config.store.split(":");
  const where =
    store === "memory" ? "data in memory only" : `data in ${store === "sqlite" ? config.data : "PostgreSQL"}`;
  // On a terminal the line below says the same.
  if (process.stderr.isTTY !== true) log.info({ url, version, store, data: config.data }, "listening");
  process.stdout.write(`Leasehold ${version} is listening on ${url} (${where})\n`);
  const end = onListening?.(url);
  const { prepareMcp } = await import("../../server/mcp/preparing.ts");
  prepareMcp().catch((fault: unknown) => log.error({ err: fault }, "MCP could not be loaded"));
  const signal = await stop;
  end?.();
  log.info({ signal }, "stopping: what is under way is committed and answered");
  await server.close();
  log.info("stopped");
}

interface ServeOptions {
  /** Whether the call has the flag for it. */
  readonly mayAccept?: boolean;
  readonly onListening?: (url: string) => () => void;
}

/** The address is taken, often by Leasehold itself: then it says so, and whose data it is. */
async function explainAddress(error: unknown): Promise<never> {
  const { code, address, port } = error as NodeJS.ErrnoException & {
    readonly address?: string;
    readonly port?: number;
  };
  if (code !== "EADDRINUSE" || port === undefined) throw error;
  const host = address?.includes(":") === true ? `[${address}]` : address;
  const url = `http://${host}:${port}`;
  if (!(await isLeasehold(url))) throw error;
  throw new Failure(
    `a Leasehold server answers at ${url} already; use it, stop it, or choose another port with --port`,
    exitCodes.cannotListen,
    { cause: error },
  );
}

/** Versions before 0.2 kept the data in the working directory. */
function noteFormerPlace(out: Call["out"], data: string): void {
  if (existsSync(join(data, "leasehold.sqlite")) || !existsSync(join("data", "leasehold.sqlite"))) return;
  out.note(`there is data of an earlier server in ./data, which is not used; give --data ./data to go on with it`);
}

/** The flags that were given, by name. */
export function settingsIn(call: Pick<Call, "texts" | "isSet">): Given {
  const given = Object.entries(flags).flatMap(([flag, { many, sign }]) => {
    if (sign === undefined) return call.isSet(flag) ? [[flag, "true"] as const] : [];
    const values = call.texts(flag);
    return values.length === 0 ? [] : [[flag, many === true ? values : (values.at(-1) ?? "")] as const];
  });
  return Object.fromEntries(given);
}
