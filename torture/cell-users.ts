/** How a holder uses each kind of resource: all the time, and on after its lease's end until it is stopped. */
import { createSocket } from "node:dgram";
import { request as askHttp, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { CellChecker } from "./cell-checker.ts";
import type { Service } from "./cell-services.ts";

export interface Lease {
  readonly id: string;
  readonly fence: number;
  readonly expires_at: string;
  readonly token: string;
  readonly coordinate: string;
}

export interface Use {
  /** As the last renewal has left it. */
  readonly present: () => Lease;
  readonly service: Service;
  readonly isUsing: () => boolean;
  readonly wasRefused: () => void;
  readonly checker: CellChecker;
}

const everyMs = 15;
const answerMsMax = 1_000;
/** How long datagrams are sent on after the flow's end. */
const zombieMs = 600;

export function bearer({ token }: Lease): { readonly authorization: string } {
  return { authorization: `Bearer ${token}` };
}

export async function sendRequests({ present, isUsing, wasRefused }: Use): Promise<void> {
  const stream = askHttp(`${present().coordinate}/stream`, { headers: bearer(present()) });
  stream.on("error", () => {});
  stream.on("response", (answer) => answer.on("error", () => {}).resume());
  stream.end();
  while (isUsing()) {
    const { coordinate } = present();
    const signal = AbortSignal.timeout(answerMsMax);
    await fetch(coordinate, { headers: bearer(present()), signal })
      .then(async (answer) => {
        await answer.arrayBuffer();
        if (!answer.ok) wasRefused();
      })
      .catch(() => undefined);
    await sleep(everyMs);
  }
  stream.destroy();
}

/** One connection that stays open across renewals (G8), and its lease's name on every line. */
export async function writeLines({ present, isUsing }: Use): Promise<void> {
  const { id, token, coordinate } = present();
  const { port } = new URL(coordinate);
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  socket.write(`${token}\n`);
  while (isUsing()) {
    if (!socket.destroyed) socket.write(`${id}\n`);
    await sleep(everyMs);
  }
  socket.destroy();
}

/** One flow that stays open across renewals; when it has ended another is asked for, with the token of the moment. */
export async function sendDatagrams(use: Use): Promise<void> {
  while (use.isUsing()) {
    const opened = await openFlow(use.present());
    if (opened === "refused") use.wasRefused();
    else if (opened !== null) await sendInFlow(opened, use);
    await sleep(everyMs);
  }
}

interface Flow {
  readonly lease: Lease;
  readonly answer: IncomingMessage;
  readonly end: () => void;
}

/** null: no answer. */
function openFlow(lease: Lease): Promise<Flow | "refused" | null> {
  const { host } = new URL(lease.coordinate);
  return new Promise((resolve) => {
    const asked = askHttp(`http://${host}/flows`, { method: "POST", headers: bearer(lease), agent: false });
    const timer = setTimeout(() => asked.destroy(), answerMsMax);
    asked.on("error", () => resolve(null));
    asked.on("close", () => resolve(null));
    asked.on("response", (answer) => {
      clearTimeout(timer);
      answer.on("error", () => {});
      if (answer.statusCode === 200) return resolve({ lease, answer, end: () => asked.destroy() });
      answer.resume();
      resolve("refused");
    });
    asked.end();
  });
}

async function sendInFlow({ lease, answer, end }: Flow, { service, isUsing, checker }: Use): Promise<void> {
  const { resource } = service;
  const { hostname, port } = new URL(lease.coordinate);
  const socket = createSocket("udp4");
  socket.on("error", () => {});
  // What the service has said back is a use too: nothing may come out after the end.
  socket.on("message", (datagram) => checker.did({ kind: "udp", resource, lease: String(datagram), at: Date.now() }));
  await new Promise<void>((connected) => socket.connect(Number(port), hostname, connected));
  let key: string | null = null;
  let hasJoined = false;
  let endedAt = Number.POSITIVE_INFINITY;
  const lines = createInterface({ input: answer });
  lines.on("error", () => {});
  lines.on("line", (text) => {
    const said = JSON.parse(text) as { readonly key?: string; readonly joined?: boolean };
    key = said.key ?? key;
    hasJoined ||= said.joined === true;
  });
  answer.on("close", () => {
    endedAt = performance.now();
  });
  while (isUsing() && performance.now() < endedAt + zombieMs) {
    const datagram = hasJoined ? lease.id : key;
    if (datagram !== null) socket.send(datagram, () => {});
    await sleep(everyMs);
  }
  lines.close();
  end();
  socket.close();
}
