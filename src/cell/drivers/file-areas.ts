/** The two kinds of areas that can be leased: a folder, and a range of bytes of a file, a block device or memory. */
import { randomUUID } from "node:crypto";
import type { AccessFailure } from "../failure.ts";
import { SafeFolder } from "../safe-folder.ts";
import { type AskedFile, type Bytes, receive, type Span, send, spanOf, wholeNumber } from "./file-transfer.ts";

/** null: it has been answered. */
export interface FileArea {
  read(asked: AskedFile): Promise<AccessFailure | null>;
  write(asked: AskedFile): Promise<AccessFailure | null>;
  remove(asked: AskedFile): Promise<AccessFailure | null>;
}

const onlyRoot: AccessFailure = { code: "not_found", detail: "A range of bytes has no paths; use /." };
const wrongOffset: AccessFailure = { code: "invalid_request", detail: "Give offset as a whole number from 0." };

/** What a range is part of, while it is open. */
export interface Store extends Bytes, AsyncDisposable {
  /** Whether writing beyond its end makes it longer: a file does, a device does not. */
  readonly mayGrow: boolean;
  /** How many bytes it has, as far as this position: more are not counted. */
  sizeUpTo(end: number): Promise<number>;
}

export type OpenStore = (mode: "read" | "write") => Promise<Store>;

export class FolderArea implements FileArea {
  private readonly folder: SafeFolder;
  private readonly fileBytesMax: number;

  constructor(folder: string, fileBytesMax: number) {
    this.folder = new SafeFolder(folder);
    this.fileBytesMax = fileBytesMax;
  }

  async read(asked: AskedFile): Promise<AccessFailure | null> {
    const { response, pass, segments } = asked;
    if (await this.folder.isFolder(segments)) {
      const body = Buffer.from(`${JSON.stringify({ entries: await this.folder.list(segments) })}\n`);
      if (!pass.take(body.length, "out")) return null;
      response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
      return null;
    }
    await using handle = await this.folder.openFile(segments, "read");
    const { size } = await handle.stat();
    return await sendSpan(asked, handle, { from: 0, length: size });
  }

  async write(asked: AskedFile): Promise<AccessFailure | null> {
    const { request, response, pass, query, segments } = asked;
    if (query.get("type") === "folder") {
      await this.folder.makeFolder(segments, () => pass.check());
      return done(asked, 201);
    }
    const offset = query.get("offset");
    const from = wholeNumber(offset ?? "0");
    if (from === null) return wrongOffset;
    const room = this.fileBytesMax - from;
    if (room < 0 || Number(request.headers["content-length"] ?? 0) > room) return this.tooLarge();
    if (offset !== null) {
      await using handle = await this.folder.openFile(segments, "write");
      return (await receive(asked, handle, from, room)) ? done(asked, 204) : this.tooLarge();
    }
    let isWhole = true;
    const isPlaced = await this.folder.replace(segments, `.leasehold-${randomUUID()}.part`, async (handle) => {
      isWhole = await receive(asked, handle, 0, room);
      return () => isWhole && request.complete && pass.check();
    });
    if (isPlaced) response.writeHead(201).end();
    return isWhole ? null : this.tooLarge();
  }

  private tooLarge(): AccessFailure {
    return { code: "payload_too_large", detail: `A file here has at most ${this.fileBytesMax} bytes.` };
  }

  async remove(asked: AskedFile): Promise<AccessFailure | null> {
    await this.folder.remove(asked.segments, () => asked.pass.check());
    return done(asked, 204);
  }
}

export class RangeArea implements FileArea {
  private readonly open: OpenStore;
  private readonly span: Span;

  constructor(open: OpenStore, span: Span) {
    this.open = open;
    this.span = span;
  }

  async read(asked: AskedFile): Promise<AccessFailure | null> {
    const { query, segments } = asked;
    if (segments.length > 0) return onlyRoot;
    await using store = await this.open("read");
    const length = await this.presentLength(store);
    const offset = wholeNumber(query.get("offset") ?? "0");
    const wanted = wholeNumber(query.get("length") ?? String(length - (offset ?? 0)));
    if (offset === null || wanted === null || offset + wanted > length) return this.outside(length);
    return await sendSpan(asked, store, { from: this.span.from + offset, length: wanted });
  }

  async write(asked: AskedFile): Promise<AccessFailure | null> {
    const { request, query, segments } = asked;
    if (segments.length > 0) return onlyRoot;
    const offset = wholeNumber(query.get("offset") ?? "0");
    if (offset === null) return wrongOffset;
    await using store = await this.open("write");
    const length = store.mayGrow ? this.span.length : await this.presentLength(store);
    const room = length - offset;
    if (room < 0 || Number(request.headers["content-length"] ?? 0) > room) return this.outside(length);
    const isWhole = await receive(asked, store, this.span.from + offset, room);
    return isWhole ? done(asked, 204) : this.outside(length);
  }

  async remove(): Promise<AccessFailure | null> {
    return { code: "method_not_allowed", detail: "A range of bytes cannot be deleted; write zeros." };
  }

  /** What does not exist yet cannot be read, though it is leased. */
  private async presentLength(store: Store): Promise<number> {
    const size = await store.sizeUpTo(this.span.from + this.span.length);
    return Math.max(0, Math.min(this.span.length, size - this.span.from));
  }

  private outside(length: number): AccessFailure {
    return { code: "range_not_satisfiable", detail: `There are ${length} bytes from 0.` };
  }
}

function done({ response, pass }: AskedFile, status: number): null {
  if (pass.cutBy === null) response.writeHead(status).end();
  return null;
}

/** As much of the span as the request's Range header asks for. */
async function sendSpan(asked: AskedFile, bytes: Bytes, span: Span): Promise<AccessFailure | null> {
  const { request, response } = asked;
  const part = spanOf(request.headers.range, span.length);
  if (part === "outside") return { code: "range_not_satisfiable", detail: `There are ${span.length} bytes.` };
  const chosen = part ?? { from: 0, length: span.length };
  response.writeHead(part === null ? 200 : 206, {
    "content-type": "application/octet-stream",
    "content-length": chosen.length,
    "accept-ranges": "bytes",
    ...(part && { "content-range": `bytes ${part.from}-${part.from + part.length - 1}/${span.length}` }),
  });
  if (request.method === "HEAD") response.end();
  else await send(bytes, asked, { from: span.from + chosen.from, length: chosen.length });
  return null;
}
