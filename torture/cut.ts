/** A connection that can be cut: a TCP proxy that goes silent without closing anything, like a broken network. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Wire {
  readonly url: string;
  /** Drops everything silently. */
  cut(): void;
  /** New connections get through; the old ones are closed. */
  mend(): void;
  close(): void;
}

export async function openWire(targetPort: number): Promise<Wire> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((near) => {
    const far = connect(targetPort, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("data", (chunk) => {
        if (!isCut) to.write(chunk);
      });
      from.on("close", () => {
        sockets.delete(from);
        if (!isCut) to.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    cut: () => {
      isCut = true;
    },
    mend: () => {
      drop();
      isCut = false;
    },
    close: () => {
      server.close();
      drop();
    },
  };
}
