/**
 * A whole cell: what its configuration names, its keys, its link. It runs until it is stopped, then tears all down,
 * tells the control plane so, and leaves; or until the control plane will not have it.
 */
import { randomBytes } from "node:crypto";
import type { CellWelcome } from "../protocol/resources/cell-link.ts";
import { CellKeys, keyBytes } from "../token/node/cell-keys.ts";
import type { CellConfig } from "./config.ts";
import type { Contact } from "./connection.ts";
import { CellCore } from "./core.ts";
import { CellLink, type LinkEnd } from "./link.ts";

export interface CellProcessOptions {
  readonly config: CellConfig;
  /** As the log names the server. */
  readonly url: string;
  readonly contact: () => Promise<Contact>;
  readonly version: string;
  /** One line for each thing that is wrong. */
  readonly log: (line: string) => void;
  readonly onWelcome: (welcome: CellWelcome, core: CellCore) => void;
  /** Fires when it is to stop, with the reason. */
  readonly stop: AbortSignal;
}

export async function runCell(options: CellProcessOptions): Promise<LinkEnd> {
  const { config, url, contact, version, log, stop, onWelcome } = options;
  const keys = new CellKeys(config.cell, [placeholderKey()]);
  const core: CellCore = new CellCore(config, keys, { log, onEvent: (event) => link.tell(event) });
  const link: CellLink = new CellLink({
    contact,
    cell: config.cell,
    version,
    core,
    keys,
    onWelcome: (welcome) => {
      for (const { resource, message } of welcome.refused) log(`${resource} is not taken by the server: ${message}`);
      onWelcome(welcome, core);
    },
    onTrouble: (reason) =>
      log(`the link to the server at ${url} is down: ${reason}; leases are enforced meanwhile, and it is tried again`),
  });
  for (const fault of config.faults) log(`left out: ${fault}`);
  try {
    // What an earlier run has left is torn down before the control plane hears that this one has nothing bound.
    await core.start();
    let left: Promise<void> | null = null;
    const leave = (): void => {
      left ??= link.leave(String(stop.reason));
    };
    if (stop.aborted) leave();
    stop.addEventListener("abort", leave, { once: true });
    const end = await link.run();
    await left;
    return end;
  } finally {
    await core.drain();
    await core.close();
  }
}

/** Until the control plane has given the cell its keys, no token can be good here, and none is made. */
function placeholderKey() {
  return { id: "none", key: new Uint8Array(randomBytes(keyBytes)), retiresAt: null };
}
