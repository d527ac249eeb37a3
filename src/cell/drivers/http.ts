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
import type { Duplex } from "node:stream";
import { whenAdmitted } from "../admission.ts";
import type { Binding, CellLease, Cut, Pass } from "../binding.ts";
import { Driver, type Operations, type ProbeResult } from "../driver.ts";
import type { AccessFailure } from "../failure.ts";
import type { Fields } from "../fields.ts";
import {
  admitRequest,
  answerFailure,
  HttpListener,
  refuseUpgrade,
  resetConnection,
  whenOver,
} from "../http-listener.ts";
import { bareHost, type Listening, readListening } from "../listening.ts";
import { pump, watchService } from "../pump.ts";
import { type RequestTarget, readTarget } from "../request-target.ts";
import { probeService, reach, readProbe, type ServiceProbe } from "../service-probe.ts";
import { type Framing, framingOf, upgradeOf } from "./http-framing.ts";
import { answerHeaders, questionHeaders } from "./http-headers.ts";
import { Tunnel } from "./http-tunnel.ts";

interface HttpOptions {
  readonly target: URL;
  readonly listening: Listening;
  /** Until the service has begun to answer. */
  readonly answerMs: number;
  /** Protocols that a request may change to. */
  readonly upgrades: readonly string[];
  readonly probe: ServiceProbe | null;
}

export function readHttpOptions(fields: Fields, folder: string): HttpOptions {
  const upgrades = fields.list("upgrades") ?? ["websocket"];
  if (upgrades.some((protocol) => /^h2c?$/i.test(protocol))) {
    fields.fault("upgrades", "has HTTP/2, whose requests nobody would check; give protocols such as websocket");
  }
  return {
    target: fields.address("target", /^https?:\/\/[^\s?#]+$/, "give http://host:port"),
    listening: readListening(fields),
    answerMs: fields.integer("answer_ms", [1, 3_600_000], 30_000),
    upgrades,
    probe: readProbe(fields, folder),
  };
}

const readMethods = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
/** Idle connections to the service, of one lease. */
const idleMax = 256;
const pathRefused: AccessFailure = {
  code: "path_not_allowed",
  detail: "The path is not in origin form, or has dot segments, backslashes or broken encoding.",
};

interface Forwarded {
  readonly request: IncomingMessage;
  readonly binding: Binding;
  readonly target: RequestTarget;
  readonly framing: Framing;
  readonly upgrade: string | null;
}

export class HttpDriver extends Driver<HttpOptions> {
  /** `connect` is an upgrade: what passes then is not HTTP. */
  static readonly operations: Operations = { read: "reads", write: "writes", connect: "opaque" };
  private readonly isSecure = this.options.target.protocol === "https:";
  private readonly ask: typeof requestHttp = this.isSecure ? requestHttps : requestHttp;
  private readonly host = bareHost(this.options.target);
  private readonly base = this.options.target.pathname.replace(/\/$/, "");
  /** Connections to the service, for each lease its own: an answer that is late or forged reaches no other (G14). */
  private readonly pools = new Map<string, HttpAgent>();
  private readonly listener = new HttpListener(this.options.listening, this.place.tls, {
    request: (request, response) => this.serve(request, response),
    upgrade: (request, socket, head) => this.upgrade(request, socket, head),
  });

  override start(): Promise<void> {
    return this.listener.open();
  }

  async bind(): Promise<string> {
    return this.listener.url;
  }

  /** Another holder gets connections of its own (G14). */
  override renewed({ lease }: Binding, before: CellLease): void {
    if (lease.holder !== before.holder) this.dropPool(lease.id);
  }

  override async teardown(binding: Binding): Promise<void> {
    await binding.whenIdle();
    this.dropPool(binding.lease.id);
  }

  async probe(signal: AbortSignal): Promise<ProbeResult> {
    const open = this.inFlight();
    if (open > 0) return { clean: false, detail: `${open} connections are open` };
    const { probe, target } = this.options;
    return await (probe === null ? reach(target) : probeService(probe, this.leaseJson("probe", null), signal));
  }

  async reset(): Promise<void> {
    this.listener.server.closeAllConnections();
    for (const lease of [...this.pools.keys()]) this.dropPool(lease);
  }

  override async stop(): Promise<void> {
    for (const lease of [...this.pools.keys()]) this.dropPool(lease);
    await this.listener.close();
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const framing = framingOf(request);
    if ("code" in framing) return answerFailure(response, framing);
    const target = readTarget(request.url ?? "");
    if (target === null) return answerFailure(response, pathRefused);
    let question: ClientRequest | null = null;
    const operation = readMethods.has(request.method ?? "") ? "read" : "write";
    const admitted = this.admit(request, operation, target, (failure) => {
      question?.destroy();
      answerFailure(response, failure);
    });
    whenAdmitted(admitted, (pass) => {
      if ("code" in pass) return answerFailure(response, pass);
      whenOver(response, () => {
        pass.close();
        question?.destroy();
      });
      // It may have gone while its program was searched for.
      if (request.socket.destroyed) return;
      if (request.headers.expect !== undefined) response.writeContinue();
      question = this.question({ request, binding: pass.binding, target, framing, upgrade: null });
      question.on("response", (answer) => this.answer(answer, response, pass));
      this.watch(question, pass);
      if (framing.body === "none") question.end();
      else pump(request, question, pass, "in");
    });
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
    const protocol = upgradeOf(request, this.options.upgrades);
    if (typeof protocol !== "string") return refuseUpgrade(socket, protocol);
    const target = readTarget(request.url ?? "");
    if (target === null) return refuseUpgrade(socket, pathRefused);
    const tunnel = new Tunnel(request, socket, head, protocol);
    const admitted = this.admit(request, "connect", target, (failure) => tunnel.cut(failure));
    whenAdmitted(admitted, (pass) => {
      if ("code" in pass) return refuseUpgrade(socket, pass);
      const framing = { body: "none", isOdd: true } as const;
      const question = this.question({ request, binding: pass.binding, target, framing, upgrade: protocol });
      this.watch(question, pass);
      tunnel.open(question, pass);
    });
  }

  private admit(request: IncomingMessage, operation: string, { plain }: RequestTarget, cut: Cut) {
    return admitRequest(
      this.place.admission,
      request,
      plain === null ? { operation } : { operation, path: plain },
      cut,
    );
  }

  private question({ request, binding, target, framing, upgrade }: Forwarded): ClientRequest {
    const { lease } = binding;
    const { protocol, port, host } = this.options.target;
    return this.ask({
      // What a service could misread gets a connection of its own, which is closed after it.
      agent: framing.isOdd ? false : this.poolOf(lease.id),
      protocol,
      hostname: this.host,
      port,
      method: request.method,
      path: `${this.base}${target.path}${target.query}`,
      headers: questionHeaders(request, { lease, host, framing, upgrade }),
    });
  }

  private poolOf(lease: string): HttpAgent {
    const known = this.pools.get(lease);
    if (known !== undefined) return known;
    const pool = new (this.isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxFreeSockets: idleMax });
    this.pools.set(lease, pool);
    return pool;
  }

  private dropPool(lease: string): void {
    this.pools.get(lease)?.destroy();
    this.pools.delete(lease);
  }

  private watch(question: ClientRequest, pass: Pass): void {
    watchService(question, ["response", "upgrade", "close"], this.options.answerMs, (failure) => pass.cut(failure));
  }
}
