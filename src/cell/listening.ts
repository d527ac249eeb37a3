/** Where a gateway listens, and the name under which others reach it. */
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import type { Fields } from "./fields.ts";

export interface Listening {
  readonly host: string;
  readonly port: number;
  /** What holders connect to, where that is another name than the one listened on. */
  readonly advertise: string | null;
  readonly connectionsMax: number;
}

export const addressPattern = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/;
const addressHint = "give host:port, such as 127.0.0.1:8080; port 0 takes a free one";

export function readListening(fields: Fields): Listening {
  const listen = fields.matching("listen", addressPattern, addressHint, "127.0.0.1:0");
  const advertise = fields.matching("advertise", addressPattern, addressHint, null);
  const connectionsMax = fields.integer("connections_max", [1, 1_000_000], 10_000);
  const colon = listen.lastIndexOf(":");
  const port = Number(listen.slice(colon + 1));
  if (port > 65_535) fields.fault("listen", `is "${listen}"; ${addressHint}`);
  return { host: listen.slice(0, colon).replace(/^\[|\]$/g, ""), port, advertise, connectionsMax };
}

/** Returns host:port as holders are to use it. */
export async function listen(server: Server, { host, port, advertise }: Listening): Promise<string> {
  server.listen({ host, port, backlog: 4_096 });
  await once(server, "listening");
  const { address, family, port: taken } = server.address() as AddressInfo;
  if (advertise !== null) return advertise.replace(/:0$/, `:${taken}`);
  return family === "IPv6" ? `[${address}]:${taken}` : `${address}:${taken}`;
}

/** Without the brackets that an IPv6 address has in a URL. */
export function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}
