/**
 * One connection of a cell to the control plane:
 *
 *   open → hello → welcome → commands, heartbeats, reports … → over, for whatever reason
 *
 * A cell that stood still for longer than the control plane waits for a heartbeat, or hears nothing for that long, ends it: a
 * new hello then compares what both believe.
 */
import type { IncomingMessage } from "node:http";
import { type RawData, WebSocket } from "ws";
import {
  type CellFrame,
  type CellWelcome,
  cellCloseCodes,
  cellLinkLimits,
  cellLinkPath,
  linkFrameText,
  linkReason,
  readServerFrame,
  type ServerFrame,
} from "../protocol/resources/cell-link.ts";
import type { CellKeys } from "../token/node/cell-keys.ts";
import type { ClientTls } from "../trust/client-tls.ts";
import type { CellCore } from "./core.ts";
import type { EndedReport, EndedReports } from "./ended-reports.ts";
import { execute } from "./executing.ts";
import { readAll } from "./pump.ts";

/** Where the control plane is, and what is shown to it. */
export interface Contact {
  readonly url: string;
  readonly key: string | null;
  /** null: what the platform trusts, and no certificate. */
  readonly tls: ClientTls | null;
}

export interface ConnectionOptions extends Contact {
  readonly cell: string;
  readonly version: string;
  readonly core: CellCore;
  readonly keys: CellKeys;
  readonly reports: EndedReports;
  readonly session: string;
  readonly onWelcome: (welcome: CellWelcome) => void;
}

export interface ConnectionEnd {
  readonly reason: string;
  /** Why to try again with the same key may be of no use. */
  readonly refusal: "none" | "not_allowed" | "replaced";
}

/** From the first byte to the welcome; the server's own limit for the hello is within. */
const welcomeMsMax = 15_000;
const refusalBytesMax = 16_384;
const leaveMsMax = 2_000;

export class CellConnection {
  readonly over: Promise<ConnectionEnd>;
  private readonly options: ConnectionOptions;
  private readonly socket: WebSocket;
  /** By the number of what was sent: when, for the clock, and which report it was. */
  private readonly sent = new Map<number, { readonly mark: number; readonly report: EndedReport | null }>();
  private helloMark = 0;
  private seq = 0;
  private isWelcome = false;
  private toldInventory = "";
  private heardAt: number;
  private stirredAt: number;
  private aliveMs = welcomeMsMax;
  private timer: NodeJS.Timeout;
  private refusal: ConnectionEnd["refusal"] = "none";
  private reason: string | null = null;

  constructor(options: ConnectionOptions) {
    this.options = options;
    const { url, key, tls, core } = options;
    this.heardAt = core.clock.now();
    this.stirredAt = this.heardAt;
    this.socket = new WebSocket(`${url.replace(/^http/, "ws")}${cellLinkPath}`, {
      headers: key === null ? {} : { authorization: `Bearer ${key}` },
      handshakeTimeout: welcomeMsMax,
      maxPayload: cellLinkLimits.frameBytesMax,
      perMessageDeflate: false,
      ...tls,
    });
    this.timer = setTimeout(() => this.abandon("it did not welcome the cell in time"), welcomeMsMax);
    this.over = new Promise((resolve) => {
      this.socket.on("close", (code, text) => {
        clearTimeout(this.timer);
        this.readClose(code, String(text));
        resolve({ reason: this.reason ?? "the connection was closed", refusal: this.refusal });
      });
    });
    this.socket.on("open", () => this.hello());
    this.socket.on("message", (data, isBinary) => this.receive(data, isBinary));
    this.socket.on("unexpected-response", (_request, response: IncomingMessage) => {
      void readRefusal(response).then(({ refusal, reason }) => {
        this.refusal = refusal;
        this.abandon(reason);
      });
    });
    this.socket.on("error", (error: NodeJS.ErrnoException) => {
      this.reason ??= error.message || error.code || "it cannot be reached";
    });
  }

  /** At once where something about the resources has changed. */
  tellInventory(): void {
    if (this.isWelcome && JSON.stringify(this.options.core.inventory()) !== this.toldInventory) this.beat();
  }

  tellEnded(report: EndedReport): void {
    if (!this.isWelcome) return;
    const seq = this.note(report);
    this.send({ ...report, seq });
  }

  /** The last word, after everything was torn down. */
  async leave(reason: string): Promise<void> {
    if (this.isWelcome) this.send({ type: "leaving", reason: linkReason(reason) });
    this.reason = reason;
    this.socket.close(1000);
    setTimeout(() => this.socket.terminate(), leaveMsMax).unref();
    await this.over;
  }

  private hello(): void {
    const { core, cell, session, version } = this.options;
    const inventory = core.inventory();
    this.toldInventory = JSON.stringify(inventory);
    this.helloMark = core.clock.mark();
    const bindings = core.bindings().map(({ lease, endedAs }) => {
      return { lease_id: lease.id, generation: lease.generation, fence: lease.fence, ended_as: endedAs };
    });
    this.send({ type: "hello", cell, session, version, inventory, bindings });
  }

  private receive(data: RawData, isBinary: boolean): void {
    this.heardAt = this.options.core.clock.now();
    const read = readServerFrame(String(data));
    if (isBinary || !read.ok) {
      return this.abandon(`it speaks another language: ${read.ok ? "binary frames" : read.detail}`);
    }
    if (!this.isWelcome && read.frame.type !== "welcome" && read.frame.type !== "refused") {
      return this.abandon(`it said ${read.frame.type} before its welcome`);
    }
    this.take(read.frame);
  }

  private take(frame: ServerFrame): void {
    const { core, keys } = this.options;
    switch (frame.type) {
      case "welcome":
        core.clock.observe(frame.now, this.helloMark);
        this.welcome(frame);
        return;
      case "do":
        void execute(core, frame).then((done) => {
          this.send(done);
          this.tellInventory();
        });
        return;
      case "beat":
      case "noted": {
        const sent = this.sent.get(frame.seq);
        if (sent === undefined) return;
        this.sent.delete(frame.seq);
        core.clock.observe(frame.now, sent.mark);
        if (frame.type === "noted" && sent.report !== null) this.options.reports.noted(sent.report);
        return;
      }
      case "keys":
        keys.install(readKeys(frame.keys));
        return;
      case "refused":
        this.reason = `it refuses the cell: ${frame.message} (${frame.code})`;
        return;
    }
  }

  private welcome(welcome: CellWelcome): void {
    if (this.isWelcome) return;
    clearTimeout(this.timer);
    this.options.keys.install(readKeys(welcome.keys));
    this.isWelcome = true;
    this.aliveMs = welcome.alive_ms;
    this.stirredAt = this.heardAt;
    this.timer = setInterval(() => this.tick(), welcome.heartbeat_ms);
    this.options.onWelcome(welcome);
    this.tellAllEnded();
    this.tellInventory();
  }

  private tick(): void {
    const { core } = this.options;
    const now = core.clock.now();
    const stoodStillMs = now - this.stirredAt;
    this.stirredAt = now;
    if (stoodStillMs > this.aliveMs) return this.abandon(`the cell stood still for ${stoodStillMs} ms`);
    if (now - this.heardAt > this.aliveMs) return this.abandon("it has not answered any heartbeat");
    this.beat();
    this.tellAllEnded();
    void core.retryBroken().then(() => this.tellInventory());
  }

  private beat(): void {
    const inventory = this.options.core.inventory();
    const text = JSON.stringify(inventory);
    const seq = this.note(null);
    this.send({ type: "heartbeat", seq, inventory: text === this.toldInventory ? null : inventory });
    this.toldInventory = text;
  }

  private tellAllEnded(): void {
    for (const report of this.options.reports.all()) this.tellEnded(report);
  }

  private note(report: EndedReport | null): number {
    const seq = ++this.seq;
    this.sent.set(seq, { mark: this.options.core.clock.mark(), report });
    return seq;
  }

  private send(frame: CellFrame): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(linkFrameText(frame));
  }

  private readClose(code: number, text: string): void {
    if (code === cellCloseCodes.notAllowed || code === cellCloseCodes.taken) this.refusal = "not_allowed";
    if (code === cellCloseCodes.replaced) this.refusal = "replaced";
    if (code === cellCloseCodes.shuttingDown) this.reason ??= "it is shutting down";
    if (text !== "") this.reason ??= text;
  }

  /** Without a closing handshake: who is not there would not answer it. */
  abandon(reason: string): void {
    this.reason ??= reason;
    this.socket.terminate();
  }
}

function readKeys(keys: CellWelcome["keys"]) {
  return keys.map(({ id, key, retires_at: retiresAt }) => ({
    id,
    key: new Uint8Array(Buffer.from(key, "base64url")),
    retiresAt,
  }));
}

/** What a server answers instead of opening a cell's connection. */
async function readRefusal(response: IncomingMessage): Promise<ConnectionEnd> {
  const status = response.statusCode ?? 0;
  // What is too long or breaks off is not an answer of ours.
  const detail = await readAll(response, refusalBytesMax, "too long").then(detailOf, () => null);
  switch (status) {
    case 401:
    case 403:
      return { refusal: "not_allowed", reason: `it refuses the key: ${detail ?? `status ${status}`}` };
    case 404:
      return { refusal: "not_allowed", reason: "it knows nothing of cells; is it a Leasehold server of this version?" };
    default:
      return { refusal: "none", reason: detail ?? `it answers with status ${status}` };
  }
}

function detailOf(text: string): string | null {
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown };
    return typeof detail === "string" ? detail : null;
  } catch {
    return null;
  }
}
