/**
 * A network between a server and its database that can fail in every way a network does:
 *   hold    nothing passes, in either direction, and nothing is closed
 *   deaf    requests arrive, their answers do not: half-open
 *   refuse  connections are reset, new ones too
 * `forget` leaves every connection open and dead, while new ones pass: what a firewall that lost its state does.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { resetSocket } from "../src/cell/reset-socket.ts";

export type NetworkState = "pass" | "hold" | "deaf" | "refuse";

export class TcpProxy {
  readonly port: number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #state: NetworkState = "pass";

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (near: Socket) => this.#join(near, targetPort));
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new TcpProxy(server, targetPort);
  }

  /** The same address, through this proxy. */
  through(url: string): string {
    const through = new URL(url);
    through.hostname = "127.0.0.1";
    through.port = String(this.port);
    return through.href;
  }

  set state(state: NetworkState) {
    this.#state = state;
    if (state === "refuse") this.reset();
  }

  /** Ends every connection as a crash of the network does; what was held is lost. */
  reset(): void {
    for (const { near, far } of this.#pairs) {
      resetSocket(near);
      resetSocket(far);
    }
    this.#pairs.clear();
  }

  /** Half-open for good: neither side learns that nothing will come any more. */
  forget(): void {
    for (const pair of this.#pairs) pair.isForgotten = true;
  }

  close(): void {
    this.#server.close();
    this.reset();
  }

  #join(near: Socket, targetPort: number): void {
    if (this.#state === "refuse") return void resetSocket(near);
    const far = connect(targetPort, "127.0.0.1");
    const pair: Pair = { near, far, isForgotten: false };
    this.#pairs.add(pair);
    const end = (): void => {
      // An end is news too, and does not get through either.
      if (this.#state === "hold" || this.#state === "deaf" || pair.isForgotten) return;
      this.#pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.on("error", () => undefined).on("close", end);
    near.on("data", (chunk) => {
      if (this.#state !== "hold" && !pair.isForgotten) far.write(chunk);
    });
    far.on("data", (chunk) => {
      if (this.#state === "pass" && !pair.isForgotten) near.write(chunk);
    });
  }
}

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  isForgotten: boolean;
}
