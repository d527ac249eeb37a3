/** Datagrams through a cell: a flow that is opened with the token, and ends with the lease (see docs/cells.md, `udp`). */
import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { request as requestSecurely } from "node:https";
import { isIPv6 } from "node:net";
import { LeaseholdError } from "../errors.ts";
import type { Gateway, GatewayRefusal } from "../gateway.ts";
import type { LeaseDatagrams } from "../lease-streams.ts";

/** The key is sent again until the cell says that it came. */
const joinEveryMs = 100;
/** Datagrams that nobody has read yet; the oldest are dropped, as datagrams may be. */
const unreadMax = 1_000;

interface Opened {
  readonly asked: ClientRequest;
  readonly lines: AsyncIterator<string>;
  readonly socket: Socket;
}

export async function openDatagrams(gateway: Gateway): Promise<DatagramFlow> {
  const place = gateway.place("udp:", "udps:");
  return new DatagramFlow(await gateway.present((token) => open(place, token, gateway)), gateway);
}

export class DatagramFlow implements LeaseDatagrams {
  private readonly opened: Opened;
  private readonly gateway: Gateway;
  private readonly unread: Uint8Array[] = [];
  private wake: (() => void) | null = null;
  private failure: LeaseholdError | null = null;
  private isClosed = false;

  constructor(opened: Opened, gateway: Gateway) {
    this.opened = opened;
    this.gateway = gateway;
    opened.socket.on("message", (datagram) => {
      if (this.unread.length >= unreadMax) this.unread.shift();
      this.unread.push(datagram);
      this.wake?.();
    });
    void this.follow();
  }

  send(datagram: Uint8Array | string): Promise<void> {
    if (this.failure !== null) return Promise.reject(this.failure);
    if (this.isClosed) return Promise.reject(new LeaseholdError({ code: "closed", detail: "The flow was closed." }));
    return new Promise((resolve, reject) => {
      this.opened.socket.send(datagram, (error) => {
        if (error === null) return resolve();
        this.gateway.typed(error).then(reject, reject);
      });
    });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const next = this.unread.shift();
      if (next !== undefined) yield next;
      else if (this.failure !== null) throw this.failure;
      else if (this.isClosed) return;
      else
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    this.opened.asked.destroy();
    this.opened.socket.close();
    this.wake?.();
  }

  /** The answer that the flow belongs to: its last line says why it has ended. */
  private async follow(): Promise<void> {
    const { signal } = this.gateway;
    const onLost = (): void => void this.opened.asked.destroy();
    signal.addEventListener("abort", onLost);
    const failure = await this.ending();
    signal.removeEventListener("abort", onLost);
    if (!this.isClosed) this.failure = failure;
    await this.close();
  }

  private async ending(): Promise<LeaseholdError> {
    try {
      const last = await nextLine(this.opened.lines);
      return await this.gateway.refused("error" in last ? last : { error: "" });
    } catch (error) {
      return await this.gateway.typed(error);
    }
  }
}

async function open(
  { host, hostname, port, protocol }: URL,
  token: string,
  { signal, certificates }: Gateway,
): Promise<Opened | GatewayRefusal> {
  const headers = { authorization: `Bearer ${token}` };
  const options = { method: "POST", headers, agent: false, signal } as const;
  // The datagrams themselves are as they are; only the token and the flow's key are hidden.
  const asked =
    protocol === "udps:"
      ? requestSecurely(`https://${host}/flows`, { ...options, ...certificates })
      : request(`http://${host}/flows`, options);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.on("response", resolve).on("error", reject).end();
  });
  answer.on("error", () => undefined);
  const lines = linesOf(answer);
  const first = await nextLine(lines);
  if ("error" in first) return first;
  const flow = await joined(hostname.replace(/^\[|\]$/g, ""), Number(port), first.key ?? "", lines).catch((error) => {
    asked.destroy();
    throw error;
  });
  return "error" in flow ? flow : { asked, lines, socket: flow };
}

/** A socket whose address the cell knows as the flow's. */
async function joined(
  host: string,
  port: number,
  key: string,
  lines: AsyncIterator<string>,
): Promise<Socket | GatewayRefusal> {
  const { address } = await lookup(host);
  const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
  // A datagram that could not be delivered is lost; the flow goes on.
  socket.on("error", () => undefined);
  const send = (): void => socket.send(key, () => undefined);
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((connected) => socket.connect(port, address, connected));
    send();
    timer = setInterval(send, joinEveryMs);
    const line = await nextLine(lines);
    if (!("error" in line)) return socket;
    socket.close();
    return line;
  } catch (error) {
    socket.close();
    throw error;
  } finally {
    clearInterval(timer);
  }
}

type Line = { readonly key?: string } | GatewayRefusal;

async function nextLine(lines: AsyncIterator<string>): Promise<Line> {
  const { done, value } = await lines.next();
  if (done === true) throw new Error("the gateway's answer ended");
  return JSON.parse(value) as Line;
}

async function* linesOf(answer: IncomingMessage): AsyncGenerator<string> {
  let rest = "";
  for await (const text of answer.setEncoding("utf8") as AsyncIterable<string>) {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
  if (rest !== "") yield rest;
}
