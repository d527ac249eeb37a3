/** Runs a cell: hosts the resources of a configuration, and enforces the leases on them. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { CellConfig } from "../../cell/config.ts";
import { version } from "../../server/config/version.ts";
import { readClientTls } from "../../trust/client-tls.ts";
import type { Call, Command } from "../command.ts";
import { checkMaySend, readAddress } from "../connection.ts";
import { exitCodes } from "../exit-codes.ts";
import { hideKey } from "../key-file.ts";
import { keyFor } from "../owner-key.ts";
import { Failure, UsageProblem } from "../problem.ts";
import { untilStopped } from "../stop-signals.ts";

const cellCommand: Command = {
  name: "cell",
  summary: "runs a cell: hosts resources, and enforces the leases on them",
  usage: "--config FILE [--server URL] [--check]",
  about: `It enrols with a cell's key (\`leasehold keys create --role cell\`), binds and tears down as the server says, and ends
leases by its own clock where the server is out of reach. A resource that is wrong or cannot be opened is one line on
standard error, and the others go on. SIGTERM ends everything that is bound, tells the server, and leaves.`,
  flags: {
    config: { sign: "FILE", words: "the cell's configuration; docs/cells.md says what stands in it" },
    server: { sign: "URL", many: true, words: "the server, or several, as --url" },
    check: { words: "check the configuration, print its faults, and end" },
  },
  examples: [
    ["leasehold cell --config cell.json --check", "is the configuration right?"],
    ["leasehold cell --key-file lab-1.key --server https://leases.lab:7117 --config cell.json", "run it"],
  ],
  run: async (call) => {
    const config = await readConfig(call);
    if (call.isSet("check")) return check(call, config);
    const { key } = call;
    // Read once: a key file may be a pipe.
    const flagOf = (flag: string): string => (flag === "url" && call.isSet("server") ? "server" : flag);
    const address = readAddress(
      {
        text: (flag) => (flag === "key" ? key : call.text(flagOf(flag))),
        texts: (flag) => call.texts(flagOf(flag)),
        isSet: (flag) => call.isSet(flagOf(flag)),
      },
      { ...call.environment, LEASEHOLD_KEY_FILE: "" },
      call.cwd,
    );
    const { urls, tls: tlsFiles } = address;
    const url = urls.join(" or ");
    let connections = 0;
    checkMaySend(address);
    hideKey(key, call.environment);
    readClientTls(tlsFiles);
    const { out } = call;
    const { runCell } = await import("../../cell/cell-process.ts");
    const end = await untilStopped((stop) => {
      // Who says it twice does not want to wait for drivers.
      stop.addEventListener("abort", () => setImmediate(exitOnNextSignal));
      return runCell({
        config,
        url,
        // For each connection: certificates are renewed, and the owner's server may be another by then. A connection that has
        // ended is followed by one to the next server, any of which links cells.
        contact: async () => {
          const tls = readClientTls(tlsFiles);
          const next = urls[connections++ % urls.length] ?? address.url;
          return { ...(await keyFor({ url: next, key }, tls, call.environment)), tls };
        },
        version,
        stop,
        log: (line) => out.note(line),
        onWelcome: ({ tenant }, core) => {
          const resources = core.inventory().map(({ resource, ready }) => ({ resource, ready }));
          const ready = resources.filter((one) => one.ready).length;
          out.show(
            { cell: config.cell, url, tenant, resources },
            () =>
              `cell ${config.cell} is linked to ${url} (tenant ${tenant}); ${ready} of ${resources.length} resources are ready`,
          );
        },
      });
    });
    if (end.type === "left") return exitCodes.done;
    if (end.isReplaced)
      throw new Failure(`another process has taken the place of the cell ${config.cell}: ${end.reason}`);
    throw new UsageProblem(
      `the server at ${url} does not take this cell: ${end.reason}; give a cell's key with --key-file`,
    );
  },
};

async function readConfig(call: Call): Promise<CellConfig> {
  const given = call.text("config");
  if (given === null) throw new UsageProblem("name the cell's configuration with --config FILE");
  const file = resolve(call.cwd, given);
  const { readCellConfig, ConfigUnusable } = await import("../../cell/config.ts");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageProblem(`the configuration ${given} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  try {
    return readCellConfig(text, file);
  } catch (error) {
    throw error instanceof ConfigUnusable ? new UsageProblem(error.message) : error;
  }
}

function check({ out }: Call, { cell, resources, faults }: CellConfig): number {
  for (const fault of faults) out.note(fault);
  const listed = resources.map(({ resource, driver, capacity, hardware }) => ({
    resource,
    driver,
    capacity,
    hardware,
  }));
  out.show({ cell, resources: listed, faults }, () =>
    faults.length === 0
      ? `cell ${cell}: ${resources.length} resources, and nothing is wrong with them`
      : `cell ${cell}: ${resources.length} resources could be used; ${faults.length} faults`,
  );
  return faults.length === 0 ? exitCodes.done : exitCodes.notSo;
}

function exitOnNextSignal(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(exitCodes.failed));
}

export const commands: readonly Command[] = [cellCommand];
