/**
 * What the first bytes of a connection say of its first request. It only chooses which of the server's shards gets the
 * connection; the shard looks at each request again, and passes on what is not its own.
 */

/** As far as it matters where a request goes. */
export interface RequestHead {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

const end = "\r\n\r\n";

/** Null: the head is not whole yet, or is not one. */
export function readHead(bytes: Buffer): RequestHead | null {
  const length = bytes.indexOf(end);
  if (length === -1) return null;
  const [first = "", ...lines] = bytes.toString("latin1", 0, length).split("\r\n");
  const [method, url] = first.split(" ");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const at = line.indexOf(":");
    if (at <= 0) continue;
    const name = line.slice(0, at).toLowerCase();
    const value = line.slice(at + 1).trim();
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}${name === "cookie" ? "; " : ", "}${value}`;
  }
  return { method, url, headers };
}
