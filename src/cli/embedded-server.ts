/**
 * A server in this process, for a machine on which none runs. Several processes may want one at once: the process that gets the
 * address has it, the others use it; and when that process ends, the next one that misses it takes its place, with the
 * same data.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultUrl, homeFolder } from "../names/defaults.ts";
import type { RunningServer } from "../server/start.ts";
import type { Environment } from "./command.ts";
import { messageOf } from "./problem.ts";

export interface EmbeddedOptions {
  /** Of several only one has to answer, and none is started: they are servers of a cluster. */
  readonly urls: readonly string[];
  readonly data: string | null;
  readonly environment: Environment;
  readonly note: (text: string) => void;
}

/** Another process that starts one at the same time needs a moment. */
const attempts = 20;
const pauseMs = 100;

export class EmbeddedServer {
  private readonly options: EmbeddedOptions;
  private running: RunningServer | null = null;
  private ensuring: Promise<void> | null = null;

  constructor(options: EmbeddedOptions) {
    this.options = options;
  }

  /** Returns once something answers at the address, or nothing can be done about it. */
  ensure(): Promise<void> {
    this.ensuring ??= this.start().finally(() => {
      this.ensuring = null;
    });
    return this.ensuring;
  }

  async close(): Promise<void> {
    await this.running?.close();
  }

  private async start(): Promise<void> {
    const { urls, data, environment, note } = this.options;
    const [url = defaultUrl] = urls;
    const { hostname, port, protocol } = new URL(url);
    const { isLoopback } = await import("../trust/loopback.ts");
    for (let attempt = 0; attempt < attempts; attempt++) {
      if ((await Promise.all(urls.map(fetchHealth))).some((health) => health !== null)) return;
      // One can only be started on this machine, and only once.
      if (urls.length > 1 || !isLoopback(hostname) || protocol !== "http:" || this.running !== null) return;
      try {
        const { LEASEHOLD_DATA, LEASEHOLD_OWNER_ONLY } = environment;
        const folder = data ?? (LEASEHOLD_DATA || join(homeFolder(), "data"));
        (await import("./data-folder.ts")).checkDataPlace(folder);
        const host = hostname.replace(/^\[|\]$/g, "");
        const { loadConfig } = await import("../server/config/config.ts");
        const { startServer } = await import("../server/start.ts");
        const { ownerOnly } = loadConfig({}, { LEASEHOLD_OWNER_ONLY });
        this.running = await startServer({ host, port: Number(port || 80), data: folder, ownerOnly, log: quiet(note) });
        note(`no server answered at ${url}, so one was started in this process, with its data in ${folder}`);
        return;
      } catch (error) {
        if (attempt === attempts - 1) note(`no server at ${url}, and none could be started: ${messageOf(error)}`);
        await sleep(pauseMs);
      }
    }
  }
}

/** What is at the address answers with; null where nothing does. */
function fetchHealth(url: string): Promise<Response | null> {
  return fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
}

function quiet(note: (text: string) => void) {
  const warn = (details: object | string, message?: string): void => note(message ?? String(details));
  return { info: () => undefined, warn, error: warn };
}
