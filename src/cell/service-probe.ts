/**
 * Whether the service behind a gateway is clean (G7): the user's own URL or command says so. Without one the gateway
 * can only say that none of its connections is left.
 */
import { connect } from "node:net";
import type { ProbeResult } from "./driver.ts";
import type { Fields } from "./fields.ts";
import { Launcher, type LaunchOptions, readCommand, readLaunchOptions } from "./launching.ts";
import { bareHost } from "./listening.ts";
import { readAll } from "./pump.ts";
import { runForLease } from "./run-command.ts";

export type ServiceProbe =
  | { readonly type: "url"; readonly url: URL }
  | { readonly type: "command"; readonly command: readonly string[]; readonly launch: LaunchOptions };

const answerBytesMax = 65_536;
const detailLengthMax = 200;

/** `probe` in the options of a gateway: a URL as text, or a command as a list. null where there is none. */
export function readProbe(fields: Fields, folder: string): ServiceProbe | null {
  const given = fields.raw("probe");
  if (given === undefined) return null;
  if (typeof given === "string")
    return { type: "url", url: fields.address("probe", /^https?:\/\/[^\s#]+$/, "give http://host/path or a command") };
  return {
    type: "command",
    command: readCommand(fields, "probe", folder) ?? [],
    launch: readLaunchOptions(fields, false),
  };
}

/** `facts` are what the command is given. Throws where it cannot be asked, which is a no. */
export async function probeService(
  probe: ServiceProbe,
  facts: Readonly<Record<string, string | number>>,
  signal: AbortSignal,
): Promise<ProbeResult> {
  if (probe.type === "url") return await askUrl(probe.url, signal);
  const launcher = new Launcher(probe.launch);
  await launcher.prepare();
  await runForLease({ launcher, command: probe.command, facts, signal });
  return { clean: true, detail: "the probe has seen it clean" };
}

/** A 2xx is a yes, unless its body is JSON that says `"clean": false`. */
async function askUrl(url: URL, signal: AbortSignal): Promise<ProbeResult> {
  const response = await fetch(url, { signal, redirect: "manual" });
  const text =
    response.body === null ? "" : await readAll(response.body, answerBytesMax, "the probe's answer is too long");
  if (!response.ok) return { clean: false, detail: `the probe answered ${response.status}` };
  const { clean, detail } = parsed(text);
  const said = typeof detail === "string" ? detail.slice(0, detailLengthMax) : "the probe has seen it clean";
  return clean === false
    ? { clean, detail: typeof detail === "string" ? said : "the probe says no" }
    : { clean: true, detail: said };
}

function parsed(text: string): { readonly clean?: unknown; readonly detail?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Whether something listens there: all that is known of a service without a probe. */
export function reach(target: URL): Promise<ProbeResult> {
  const port = Number(target.port || (target.protocol === "https:" ? 443 : 80));
  const socket = connect({ host: bareHost(target), port });
  return new Promise((resolve) => {
    socket.on("connect", () => {
      socket.destroy();
      resolve({ clean: true, detail: "the service answers" });
    });
    socket.on("error", ({ message }) => {
      resolve({ clean: false, detail: `the service cannot be reached: ${message}` });
    });
  });
}
