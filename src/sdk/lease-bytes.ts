/** Files, ranges of bytes and memory that a cell hosts: read and written without tokens in the program's hands. */
import type { Gateway } from "./gateway.ts";

/** What can be written. A stream is sent once: if the token is stale by then, the write fails and had no effect. */
export type FileData = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array>;

export interface Part {
  /** From 0. */
  readonly offset?: number | undefined;
  /** To the end if left out. */
  readonly length?: number | undefined;
}

export interface FileEntry {
  readonly name: string;
  readonly type: "file" | "folder" | "other";
}

/** A file or folder of a leased folder, or the whole of a leased range. */
export class LeaseFile {
  private readonly gateway: Gateway;
  private readonly path: string;

  constructor(gateway: Gateway, path: string) {
    this.gateway = gateway;
    this.path = path.split("/").filter(Boolean).map(encodeURIComponent).join("/");
  }

  async read(part: Part = {}): Promise<Uint8Array> {
    if (part.length === 0) return new Uint8Array();
    return new Uint8Array(await (await this.get(part)).arrayBuffer());
  }

  async text(): Promise<string> {
    return (await this.get({})).text();
  }

  /** For what is too large to be held at once. */
  async stream(part: Part = {}): Promise<ReadableStream<Uint8Array>> {
    return (await this.get(part)).body ?? new Blob().stream();
  }

  /** The whole file, in one step; with an offset the bytes from there on, and the others stay. */
  async write(data: FileData, { offset }: Pick<Part, "offset"> = {}): Promise<void> {
    await this.gateway.ask(offset === undefined ? this.path : `${this.path}?offset=${offset}`, put(data));
  }

  /** Of a folder. */
  async list(): Promise<readonly FileEntry[]> {
    const response = await this.gateway.ask(this.path, {});
    return ((await response.json()) as { readonly entries: readonly FileEntry[] }).entries;
  }

  async makeFolder(): Promise<void> {
    await this.gateway.ask(`${this.path}?type=folder`, { method: "PUT" });
  }

  /** A file, or an empty folder. */
  async remove(): Promise<void> {
    await this.gateway.ask(this.path, { method: "DELETE" });
  }

  private get({ offset = 0, length }: Part): Promise<Response> {
    if (offset === 0 && length === undefined) return this.gateway.ask(this.path, {});
    const range = `bytes=${offset}-${length === undefined ? "" : offset + length - 1}`;
    return this.gateway.ask(this.path, { headers: { range } });
  }
}

/** A region of a cell's memory. What lies outside it is refused, and nothing of the operation is done. */
export class LeaseMemory {
  private readonly gateway: Gateway;

  constructor(gateway: Gateway) {
    this.gateway = gateway;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const response = await this.gateway.ask(`?offset=${offset}&length=${length}`, {});
    return new Uint8Array(await response.arrayBuffer());
  }

  async write(offset: number, data: FileData): Promise<void> {
    await this.gateway.ask(`?offset=${offset}`, put(data));
  }
}

/** Browsers and Node both ask for `duplex` where a stream is sent. */
function put(body: FileData): RequestInit {
  return { method: "PUT", body, ...(body instanceof ReadableStream && { duplex: "half" }) } as RequestInit;
}
