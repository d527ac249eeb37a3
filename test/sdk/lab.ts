/** A cell with one resource of each driver that has a wrapper in the SDK, and echoes behind its relays. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type CellSecurity, startCellWith } from "./real-cell.ts";

export const lab = {
  tcp: "DB:/lab/orders",
  udp: "NET:/lab/metrics",
  files: "FILE:/lab/reports",
  range: "DISK:/lab/scratch",
  memory: "MEMORY:/lab/scratch",
} as const;

export interface Lab {
  /** The open connections of the TCP service. */
  readonly sockets: ReadonlySet<Socket>;
  closeTcp(): void;
}

export async function startLab(t: TestContext, url: string, security: CellSecurity = {}): Promise<Lab> {
  const sockets = new Set<Socket>();
  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).pipe(socket);
  }).listen(0, "127.0.0.1");
  await once(tcp, "listening");
  const udp = createSocket("udp4").bind(0, "127.0.0.1");
  udp.on("message", (datagram, { port, address }) => udp.send(datagram, port, address));
  await once(udp, "listening");
  const folder = mkdtempSync(join(tmpdir(), "leasehold-lab-"));
  const image = join(folder, "disk.img");
  writeFileSync(image, "before|leased|after");
  mkdirSync(join(folder, "reports"));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    tcp.close();
    udp.close();
    rmSync(folder, { recursive: true });
  });
  const { port } = tcp.address() as AddressInfo;
  await startCellWith(
    t,
    url,
    "lab-2",
    [
      { resource: lab.tcp, driver: "tcp", options: { target: `127.0.0.1:${port}` } },
      { resource: lab.udp, driver: "udp", options: { target: `127.0.0.1:${udp.address().port}` } },
      { resource: lab.files, driver: "files", options: { folder: join(folder, "reports") } },
      { resource: lab.range, driver: "files", options: { file: image, offset: 7, length: 6 } },
      { resource: lab.memory, driver: "memory", options: { bytes: 1_024 } },
    ],
    security,
  );
  return { sockets, closeTcp: () => tcp.close() };
}
