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
import type { Binding, Cut, Pass } from "../binding.ts";
import { Driver, type ProbeResult } from "../driver.ts";
import type { AccessFailure } from "../failure.ts";
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
import { bareHost, type Listening, readListening } from "../listening.ts";
import { pump, watchService } from "../pump.ts";
import { resetSocket } from "../reset-socket.ts";
import { answerHeaders, questionHeaders } from "./http-headers.ts";

interface HttpOptions {
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

export class HttpDriver extends Driver<HttpOptions> {
  private readonly isSecure = this.options.target.protocol === "https:";
  private readonly agent = new (this.isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxFreeSockets: 256 });
  private readonly ask: typeof requestHttp = this.isSecure ? requestHttps : requestHttp;
  private readonly base = this.options.target.pathname.replace(/\/$/, "");
  private readonly listener = new HttpListener(this.options.listening, {
    request: (request, response) => this.serve(request, response),
    upgrade: (request, socket, head) => this.upgrade(request, socket, head),
  });

  override start(): Promise<void> {
    return this.listener.open();
  }

  async bind(): Promise<string> {
    return `http://${this.listener.address}`;
  }

  async probe(): Promise<ProbeResult> {
    const open = this.inFlight();
    if (open > 0) return { clean: false, detail: `${open} connections are open` };
    return await reach(this.options.target);
  }

  async reset(): Promise<void> {
    this.listener.server.closeAllConnections();
    this.agent.destroy();
  }

  override async stop(): Promise<void> {
    this.agent.destroy();
    await this.listener.close();
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    let question: ClientRequest | null = null;
    const operation = readMethods.has(request.method ?? "") ? "read" : "write";
    const pass = this.admit(request, operation, (failure) => {
      question?.destroy();
      answerFailure(response, failure);
    });
    if ("code" in pass) return answerFailure(response, pass);
    whenOver(response, () => {
      pass.close();
      question?.destroy();
    });
    if (request.headers.expect !== undefined) response.writeContinue();
    question = this.question(request, pass.binding, false);
    question.on("response", (answer) => this.answer(answer, response, pass));
    this.watch(question, pass);
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
    if ("code" in pass) return refuseUpgrade(socket, pass);
    socket.on("close", () => {
      pass.close();
      question?.destroy();
      other?.destroy();
    });
    question = this.question(request, pass.binding, true);
    this.watch(question, pass);
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
      if (upstreamHead.length > 0 && pass.take(upstreamHead.length, "out")) socket.write(upstreamHead);
      if (head.length > 0 && pass.take(head.length, "in")) upstream.write(head);
      pump(socket, upstream, pass, "in");
      pump(upstream, socket, pass, "out");
    });
    question.end();
  }

  private admit(request: IncomingMessage, operation: string, cut: Cut): Pass | AccessFailure {
    const path = plainPathOf(request);
    return admitRequest(this.place.admission, request, path === null ? { operation } : { operation, path }, cut);
  }

  private question(request: IncomingMessage, { lease }: Binding, upgrade: boolean): ClientRequest {
    const { target } = this.options;
    return this.ask({
      agent: upgrade ? undefined : this.agent,
      protocol: target.protocol,
      hostname: bareHost(target),
      port: target.port,
      method: request.method,
      path: `${this.base}${request.url ?? "/"}`,
      headers: questionHeaders(request, lease, target.host, upgrade),
    });
  }

  private watch(question: ClientRequest, pass: Pass): void {
    watchService(question, ["response", "upgrade", "close"], this.options.answerMs, (failure) => pass.cut(failure));
  }
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
