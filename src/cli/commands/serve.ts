/** Runs the server until a signal stops it. Its flags are the server's settings. */
import { environmentName, flagName, loadConfig, names, settings } from "../../server/config/config.ts";
import type { Call, Command, Flags } from "../command.ts";
import { onStopSignals } from "../stop-signals.ts";

const flags: Flags = {
  ...Object.fromEntries(
    names.map((name) => {
      const { sign, usual, words } = settings[name];
      const isList = Array.isArray(usual);
      const hasDefault = !isList && usual !== null && sign !== null;
      const text = `${words}${hasDefault ? ` [${usual}]` : ""}; ${environmentName(name)}`;
      return [flagName(name), { words: text, ...(sign !== null && { sign }), ...(isList && { many: true as const }) }];
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
  examples: [
    ["leasehold serve", "on 127.0.0.1:7117, with its data in ./data"],
    ["leasehold serve --port 7200 --data /var/lib/leasehold", "elsewhere"],
    ["leasehold serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem", "beyond this machine, with keys"],
    ["leasehold serve --owner-only", "on a machine that others use too"],
    ["leasehold serve --store memory", "to try things out; nothing is kept"],
  ],
  run: async (call) => {
    // The data holds the secret that agents' tokens are made with: it is for this user alone.
    process.umask(0o077);
    const config = loadConfig(settingsIn(call), call.environment);
    const [{ default: pino }, { startServer }, { version }] = await Promise.all([
      import("pino"),
      import("../../server/start.ts"),
      import("../../server/config/version.ts"),
    ]);
    const log = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
    // Before anything is opened, so that an early signal is not missed.
    const { promise: stop, resolve } = Promise.withResolvers<NodeJS.Signals>();
    onStopSignals(resolve, () => log.warn("a second signal: ends at once"));
    const accepted = call.isSet("accept-clock-jump") ? { clockJumpMsMax: Number.POSITIVE_INFINITY } : {};
    const server = await Promise.race([startServer({ ...config, ...accepted, log }), stop]);
    if (typeof server === "string") {
      // As after a kill: what is committed is there at the next start.
      log.info({ signal: server }, "stopped before it was ready");
      return;
    }
    const { url } = server.address;
    const where = config.store === "memory" ? "data in memory only" : `data in ${config.data}`;
    log.info({ url, version, store: config.store, data: config.data }, "listening");
    process.stdout.write(`Leasehold ${version} is listening on ${url} (${where})\n`);
    const signal = await stop;
    log.info({ signal }, "stopping: what is under way is committed and answered");
    await server.close();
    log.info("stopped");
  },
};

export const commands: readonly Command[] = [serveCommand];

/** The flags that were given, by name. */
export function settingsIn(call: Pick<Call, "texts" | "isSet">): Readonly<Record<string, string | readonly string[]>> {
  const given = Object.entries(flags).flatMap(([flag, { many, sign }]) => {
    if (sign === undefined) return call.isSet(flag) ? [[flag, "true"] as const] : [];
    const values = call.texts(flag);
    return values.length === 0 ? [] : [[flag, many === true ? values : (values.at(-1) ?? "")] as const];
  });
  return Object.fromEntries(given);
}
