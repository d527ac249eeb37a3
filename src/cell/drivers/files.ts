/**
 * `files`: a folder, or a range of bytes of one file, by a small HTTP interface. Every operation is checked, every chunk
 * of it too; what is under way when the lease ends is not put in place, and the teardown waits until it is over.
 *
 *   GET /path         the bytes (Range: bytes=a-b), or what a folder holds, as JSON
 *   PUT /path         a whole file, in one step; with ?offset=n bytes within a file; with ?type=folder a folder
 *   DELETE /path      a file, or an empty folder
 *
 * With a range, the path is / and offsets count from its beginning.
 */

import { constants } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { resolve } from "node:path";
import { Driver, type DriverPlace, type Operations, type ProbeResult } from "../driver.ts";
import { type AccessFailure, reasonOf } from "../failure.ts";
import type { Fields } from "../fields.ts";
import { admitRequest, answerFailure, HttpListener, whenOver } from "../http-listener.ts";
import { type Listening, readListening } from "../listening.ts";
import { plainPathOf, queryOf } from "../request-target.ts";
import { SafeFolder } from "../safe-folder.ts";
import { type FileArea, FolderArea, openPlain, RangeArea } from "./file-areas.ts";
import type { AskedFile, Span } from "./file-transfer.ts";

interface FilesOptions {
  readonly area:
    | { readonly type: "folder"; readonly folder: string }
    | { readonly type: "range"; readonly file: string; readonly span: Span };
  readonly readOnly: boolean;
  /** Of a file in a folder. */
  readonly fileBytesMax: number;
  readonly listening: Listening;
}

const defaultFileBytesMax = 2 ** 30;

export function readFilesOptions(fields: Fields, base: string): FilesOptions {
  const folder = fields.text("folder", null);
  const file = fields.text("file", null);
  const offset = fields.integer("offset", [0, Number.MAX_SAFE_INTEGER], 0);
  const length = fields.integer("length", [1, Number.MAX_SAFE_INTEGER], null);
  if ((folder === null) === (file === null)) fields.fault("folder", "or file: give one of the two");
  if (file !== null && length === null) fields.fault("length", "is missing; say how many bytes of the file are leased");
  if (length !== null && !Number.isSafeInteger(offset + length))
    fields.fault("length", "reaches beyond what a file can hold");
  const area =
    folder !== null
      ? ({ type: "folder", folder: resolve(base, folder) } as const)
      : ({ type: "range", file: resolve(base, file ?? ""), span: { from: offset, length: length ?? 0 } } as const);
  const fileBytesMax = fields.integer("file_bytes_max", [0, Number.MAX_SAFE_INTEGER], defaultFileBytesMax);
  return { area, readOnly: fields.flag("read_only"), fileBytesMax, listening: readListening(fields) };
}

export class FilesDriver extends Driver<FilesOptions> {
  static readonly operations: Operations = { read: "reads", write: "writes" };
  private readonly area = areaOf(this.options);
  private readonly listener = new HttpListener(this.options.listening, {
    request: (request, response) => void this.serve(request, response),
  });

  override async start(): Promise<void> {
    await this.check();
    await this.listener.open();
  }

  async bind(): Promise<string> {
    return `http://${this.listener.address}`;
  }

  async probe(): Promise<ProbeResult> {
    const open = this.inFlight();
    if (open > 0) return { clean: false, detail: `${open} operations are under way` };
    await this.check();
    return { clean: true, detail: "nothing is under way" };
  }

  async reset(): Promise<void> {
    this.listener.server.closeAllConnections();
  }

  override async stop(): Promise<void> {
    await this.listener.close();
  }

  private async check(): Promise<void> {
    const { area, readOnly } = this.options;
    if (area.type === "folder") return await new SafeFolder(area.folder).check();
    await (await openPlain(area.file, readOnly ? constants.O_RDONLY : constants.O_RDWR)).close();
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = plainPathOf(request.url ?? "");
    const operation = request.method === "GET" || request.method === "HEAD" ? "read" : "write";
    const stop = new AbortController();
    const access = { operation, ...(path !== null && { path }) };
    const pass = await admitRequest(this.place.admission, request, access, (failure) => {
      answerFailure(response, failure);
      stop.abort();
    });
    if ("code" in pass) return answerFailure(response, pass);
    const isOver = new Promise<void>((resolve) => whenOver(response, resolve));
    try {
      const failure = await this.act({ request, response, pass, signal: stop.signal }, path);
      if (failure !== null && pass.cutBy === null) answerFailure(response, failure);
    } catch (error) {
      if (pass.cutBy === null) answerFailure(response, failureFor(error, this.place));
    } finally {
      // A slow reader may still have bytes to come, which the end of the lease has to stop.
      await isOver;
      pass.close();
    }
  }

  private async act(given: Omit<AskedFile, "query" | "segments">, path: string | null): Promise<AccessFailure | null> {
    const { request, response } = given;
    if (path === null) {
      return { code: "path_not_allowed", detail: "The path has empty, . or .. segments, encoded slashes or controls." };
    }
    const asked = { ...given, query: queryOf(request.url ?? ""), segments: path.split("/").filter(Boolean) };
    const isWrite = request.method === "PUT" || request.method === "DELETE";
    if (isWrite && this.options.readOnly) return { code: "method_not_allowed", detail: "It can only be read here." };
    switch (request.method) {
      case "GET":
      case "HEAD":
        return await this.area.read(asked);
      case "PUT":
        if (request.headers.expect !== undefined) response.writeContinue();
        return await this.area.write(asked);
      case "DELETE":
        return await this.area.remove(asked);
      default:
        return { code: "method_not_allowed", detail: "There is GET, HEAD, PUT and DELETE." };
    }
  }
}

function areaOf({ area, fileBytesMax }: FilesOptions): FileArea {
  return area.type === "folder" ? new FolderArea(area.folder, fileBytesMax) : new RangeArea(area.file, area.span);
}

/** What the file system says, in our words. It never tells a path of the cell's. */
function failureFor(error: unknown, place: DriverPlace): AccessFailure {
  const linked = "The path leads over a link, or over something that is not a folder.";
  switch ((error as NodeJS.ErrnoException).code) {
    case "ENOENT":
      return { code: "not_found", detail: "There is nothing under that name." };
    case "ELOOP":
    case "ENOTDIR":
    case "EMLINK":
      return { code: "path_not_allowed", detail: linked };
    case "EISDIR":
    case "EEXIST":
    case "ENOTEMPTY":
    case "ENOTFILE":
      return { code: "conflict", detail: "There is something else under that name." };
    case "ENAMETOOLONG":
      return { code: "path_not_allowed", detail: "The name is too long." };
    case "ERR_STREAM_PREMATURE_CLOSE":
    case "ECONNRESET":
      return { code: "invalid_request", detail: "The request broke off." };
    default:
      place.log(`${place.resource}: ${reasonOf(error)}`);
      return { code: "driver_failed", detail: "The file system failed; the cell's log says how." };
  }
}
