/** The two kinds of areas that the files driver leases: a folder, and a range of bytes of one file. */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Pass } from "../binding.ts";
import type { AccessFailure } from "../failure.ts";
import { SafeFolder } from "../safe-folder.ts";
import { receive, type Span, send, spanOf, wholeNumber } from "./file-transfer.ts";

export interface AskedFile {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly pass: Pass;
  /** Aborted when the pass is cut. */
  readonly signal: AbortSignal;
  readonly query: URLSearchParams;
  readonly segments: readonly string[];
}

/** null: it has been answered. */
export interface FileArea {
  read(asked: AskedFile): Promise<AccessFailure | null>;
  write(asked: AskedFile): Promise<AccessFailure | null>;
  remove(asked: AskedFile): Promise<AccessFailure | null>;
}

const onlyRoot: AccessFailure = { code: "not_found", detail: "A range of bytes has no paths; use /." };
const wrongOffset: AccessFailure = { code: "invalid_request", detail: "Give offset as a whole number from 0." };

export class FolderArea implements FileArea {
  private readonly folder: SafeFolder;

  constructor(folder: string) {
    this.folder = new SafeFolder(folder);
  }

  async read({ request, response, pass, segments }: AskedFile): Promise<AccessFailure | null> {
    if (await this.folder.isFolder(segments)) {
      const body = Buffer.from(`${JSON.stringify({ entries: await this.folder.list(segments) })}\n`);
      if (!pass.take(body.length, "out")) return null;
      response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
      return null;
    }
    const handle = await this.folder.openFile(segments, "read");
    try {
      const { size } = await handle.stat();
      return await sendSpan(request, response, handle, pass, { from: 0, length: size });
    } finally {
      await handle.close();
    }
  }

  async write(asked: AskedFile): Promise<AccessFailure | null> {
    const { request, response, pass, query, segments } = asked;
    if (query.get("type") === "folder") {
      await this.folder.makeFolder(segments, () => pass.check());
      if (pass.cutBy !== null) return null;
      response.writeHead(201).end();
      return null;
    }
    const offset = query.get("offset");
    if (offset !== null) return await this.writeWithin(asked, wholeNumber(offset));
    const isPlaced = await this.folder.replace(segments, `.leasehold-${randomUUID()}.part`, async (handle) => {
      await receive(asked, handle, 0);
      return () => request.complete && pass.check();
    });
    if (isPlaced) response.writeHead(201).end();
    return null;
  }

  async remove({ response, pass, segments }: AskedFile): Promise<AccessFailure | null> {
    await this.folder.remove(segments, () => pass.check());
    if (pass.cutBy !== null) return null;
    response.writeHead(204).end();
    return null;
  }

  private async writeWithin(asked: AskedFile, offset: number | null): Promise<AccessFailure | null> {
    const { response, pass, segments } = asked;
    if (offset === null) return wrongOffset;
    const handle = await this.folder.openFile(segments, "write");
    try {
      await receive(asked, handle, offset);
    } finally {
      await handle.close();
    }
    if (pass.cutBy === null) response.writeHead(204).end();
    return null;
  }
}

export class RangeArea implements FileArea {
  private readonly file: string;
  private readonly span: Span;

  constructor({ file, offset, length }: { readonly file: string; readonly offset: number; readonly length: number }) {
    this.file = file;
    this.span = { from: offset, length };
  }

  async read({ request, response, pass, query, segments }: AskedFile): Promise<AccessFailure | null> {
    if (segments.length > 0) return onlyRoot;
    const handle = await open(this.file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { size } = await handle.stat();
      // What the file does not have yet cannot be read, though it is leased.
      const length = Math.max(0, Math.min(this.span.length, size - this.span.from));
      const offset = wholeNumber(query.get("offset") ?? "0");
      const wanted = wholeNumber(query.get("length") ?? String(length - (offset ?? 0)));
      if (offset === null || wanted === null || offset + wanted > length) return this.outside();
      return await sendSpan(request, response, handle, pass, { from: this.span.from + offset, length: wanted });
    } finally {
      await handle.close();
    }
  }

  async write(asked: AskedFile): Promise<AccessFailure | null> {
    const { request, response, pass, query, segments } = asked;
    if (segments.length > 0) return onlyRoot;
    const offset = wholeNumber(query.get("offset") ?? "0");
    if (offset === null) return wrongOffset;
    const room = this.span.length - offset;
    if (room < 0 || Number(request.headers["content-length"] ?? 0) > room) return this.outside();
    const handle = await open(this.file, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const isWhole = await receive(asked, handle, this.span.from + offset, room);
      if (!isWhole) return this.outside();
    } finally {
      await handle.close();
    }
    if (pass.cutBy === null) response.writeHead(204).end();
    return null;
  }

  async remove(): Promise<AccessFailure | null> {
    return { code: "method_not_allowed", detail: "A range of bytes cannot be deleted; write zeros." };
  }

  private outside(): AccessFailure {
    return { code: "range_not_satisfiable", detail: `The lease is for ${this.span.length} bytes from 0.` };
  }
}

/** As much of the span as the request's Range header asks for. */
async function sendSpan(
  request: IncomingMessage,
  response: ServerResponse,
  handle: FileHandle,
  pass: Pass,
  span: Span,
): Promise<AccessFailure | null> {
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
  else await send(handle, response, pass, { from: span.from + chosen.from, length: chosen.length });
  return null;
}
