/**
 * `http`: a reverse proxy in front of a service. Each request shows the token and is checked; streams and upgrades are
 * cut at the end of the lease. The service never sees the token; it gets lease, tenant and fence.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as requestHttp,
  type ServerResponse,
} from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Binding, Pass } from "../binding.ts";
import type { Driver, DriverPlace, ProbeResult } from "../driver.ts";
import { type AccessFailure, reasonOf } from "../failure.ts";
import type { Fields } from "../fields.ts";
import {
  admitRequest,
  answerFailure,
  HttpListener,
  plainPathOf,
  refuseUpgrade,
  resetConnection,
  whenOver,
} from "../http-listener.ts";
import { type Listening, readListening } from "../listening.ts";
import { pump } from "../pump.ts";
import { resetSocket } from "../reset-socket.ts";
import { answerHeaders, questionHeaders } from "./http-headers.ts";

export interface HttpOptions {
  readonly target: URL;
  readonly listening: Listening;
  /** Until the service has begun to answer. */
  readonly answerMs: number;
}

export function readHttpOptions(fields: Fields): HttpOptions {
  return {
    target: fields.address("target", /^https?:\/\/[^\s?#]+$/, "give http://host:port"),
    listening: readListening(fields),
    answerMs: fields.integer("answer_ms", [1, 3_600_000], 30_000),
  };
}

const readMethods = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

export class HttpDriver implements Driver {
  private readonly options: HttpOptions;
  private readonly place: DriverPlace;
  private readonly listener: HttpListener;
  private readonly agent: HttpAgent;
  private readonly ask: typeof requestHttp;
  private readonly base: string;

  constructor(options: HttpOptions, place: DriverPlace) {
    this.options = options;
    this.place = place;
    const { protocol, pathname } = options.target;
    this.agent = new (protocol === "https:" ? HttpsAgent : HttpAgent)({ keepAlive: true, maxFreeSockets: 256 });
    this.ask = protocol === "https:" ? requestHttps : requestHttp;
    this.base = pathname.replace(/\/$/, "");
    this.listener = new HttpListener(options.listening, {
      request: (request, response) => this.serve(request, response),
      upgrade: (request, socket, head) => this.upgrade(request, socket, head),
    });
  }

  start(): Promise<void> {
    return this.listener.open();
  }

  async bind(): Promise<string> {
    return `http://${this.listener.address}`;
  }

  async teardown(binding: Binding): Promise<void> {
    await binding.whenIdle();
  }

  async probe(): Promise<ProbeResult> {
    const open = [...this.place.admission.bindings.values()].reduce((sum, binding) => sum + binding.inFlight, 0);
    if (open > 0) return { clean: false, detail: `${open} connections are open` };
    return await reach(this.options.target);
  }

  async reset(): Promise<void> {
    this.listener.server.closeAllConnections();
    this.agent.destroy();
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    await this.listener.close();
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    let question: ClientRequest | null = null;
    const pass = this.admit(request, isRead(request) ? "read" : "write", (failure) => {
      question?.destroy();
      answerFailure(response, failure);
    });
    if ("code" in pass) {
      answerFailure(response, pass);
      return;
    }
    whenOver(response, () => {
      pass.close();
      question?.destroy();
    });
    if (request.headers.expect !== undefined) response.writeContinue();
    question = this.question(request, pass.binding, false);
    question.on("response", (answer) => this.answer(answer, response, pass));
    this.watch(question, (failure) => pass.cut(failure));
    if (hasBody(request)) pump(request, question, pass, "in");
    else question.end();
  }

  private answer(answer: IncomingMessage, response: ServerResponse, pass: Pass): void {
    answer.on("error", () => resetConnection(response));
    if (!pass.check()) return void answer.destroy();
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answerHeaders(answer.rawHeaders));
    pump(answer, response, pass, "out");
    // A service that breaks off must not look like one that has finished.
    answer.on("close", () => {
      if (!answer.complete) resetConnection(response);
    });
  }

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    let question: ClientRequest | null = null;
    let other: Socket | null = null;
    const pass = this.admit(request, "connect", (failure) => {
      if (other === null) refuseUpgrade(socket, failure);
      else resetSocket(request.socket);
      question?.destroy();
      other?.destroy();
    });
    if ("code" in pass) {
      refuseUpgrade(socket, pass);
      return;
    }
    socket.on("close", () => {
      pass.close();
      question?.destroy();
      other?.destroy();
    });
    question = this.question(request, pass.binding, true);
    this.watch(question, (failure) => pass.cut(failure));
    question.on("response", (answer) => {
      answer.resume();
      pass.cut({ code: "upstream_failed", detail: `The service answered ${answer.statusCode} to the upgrade.` });
    });
    question.on("upgrade", (answer, upstream, upstreamHead) => {
      if (!pass.check()) return void upstream.destroy();
      other = upstream;
      upstream.on("error", () => upstream.destroy());
      upstream.on("close", () => socket.destroy());
      socket.write(switching(answer));
      for (const [chunk, to, way] of [
        [upstreamHead, socket, "out"],
        [head, upstream, "in"],
      ] as const) {
        if (chunk.length > 0 && pass.take(chunk.length, way)) to.write(chunk);
      }
      pump(socket, upstream, pass, "in");
      pump(upstream, socket, pass, "out");
    });
    question.end();
  }

  private admit(
    request: IncomingMessage,
    operation: string,
    cut: (failure: AccessFailure) => void,
  ): Pass | AccessFailure {
    const path = plainPathOf(request);
    return admitRequest(this.place.admission, request, path === null ? { operation } : { operation, path }, cut);
  }

  private question(request: IncomingMessage, { lease }: Binding, upgrade: boolean): ClientRequest {
    const { target } = this.options;
    return this.ask({
      agent: upgrade ? undefined : this.agent,
      protocol: target.protocol,
      hostname: target.hostname.replace(/^\[|\]$/g, ""),
      port: target.port,
      method: request.method,
      path: `${this.base}${request.url ?? "/"}`,
      headers: questionHeaders(request, lease, target.host, upgrade),
    });
  }

  private watch(question: ClientRequest, fail: (failure: AccessFailure) => void): void {
    const timer = setTimeout(() => {
      fail({ code: "upstream_timeout", detail: "The service behind the gateway did not answer in time." });
    }, this.options.answerMs);
    question.on("error", () => {
      fail({ code: "upstream_failed", detail: "The service behind the gateway cannot be reached, or broke off." });
    });
    for (const event of ["response", "upgrade", "close"]) question.on(event, () => clearTimeout(timer));
  }
}

function isRead({ method }: IncomingMessage): boolean {
  return readMethods.has(method ?? "");
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}

function switching({ statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 101 ${statusMessage ?? ""}`];
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Whether something listens there. */
export function reach(target: URL): Promise<ProbeResult> {
  const port = Number(target.port || (target.protocol === "https:" ? 443 : 80));
  const socket = connect({ host: target.hostname.replace(/^\[|\]$/g, ""), port });
  return new Promise((resolve) => {
    socket.on("connect", () => {
      socket.destroy();
      resolve({ clean: true, detail: "the service answers" });
    });
    socket.on("error", (error) =>
      resolve({ clean: false, detail: `the service cannot be reached: ${reasonOf(error)}` }),
    );
  });
}
