/** Runs the server until it is told to stop. */
import pino from "pino";
import type { Config } from "../config/config.ts";
import { version } from "../config/version.ts";
import { startServer } from "../start.ts";
import { exitCodes } from "./failure.ts";

export async function serve(config: Config): Promise<number> {
  const log = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
  // Asked for before anything is opened: whoever says stop early on is heard too.
  const stop = stopSignal(() => log.warn("told to stop a second time, so it ends at once"));
  const server = await startServer({ ...config, log });
  const { url } = server.address;
  const where = config.store === "memory" ? "data in memory only" : `data in ${config.data}`;
  log.info({ url, version, store: config.store, data: config.data }, "listening");
  process.stdout.write(`Leasehold ${version} is listening on ${url} (${where})\n`);
  const signal = await stop;
  log.info({ signal }, "stopping: what is under way is committed and answered");
  await server.close();
  log.info("stopped");
  return exitCodes.done;
}

/** The first one asks, the second one insists. */
function stopSignal(insisted: () => void): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let wasTold = false;
    const told = (signal: NodeJS.Signals): void => {
      if (wasTold) {
        insisted();
        process.exit(exitCodes.failed);
      }
      wasTold = true;
      resolve(signal);
    };
    process.on("SIGTERM", told);
    process.on("SIGINT", told);
  });
}
