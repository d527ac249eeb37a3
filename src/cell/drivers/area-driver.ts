/**
 * What `files` and `memory` have in common: an area of bytes behind a small HTTP interface. Every operation is checked,
 * every chunk of it too; the teardown waits until what was cut is over.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Binding } from "../binding.ts";
import { Driver, type DriverPlace, type Operations, type ProbeResult } from "../driver.ts";
import { type AccessFailure, reasonOf } from "../failure.ts";
import { admitRequest, answerFailure, HttpListener, whenOver } from "../http-listener.ts";
import type { Listening } from "../listening.ts";
import { plainPathOf, queryOf } from "../request-target.ts";
import type { FileArea } from "./file-areas.ts";
import type { AskedFile } from "./file-transfer.ts";

export interface AreaOptions {
  readonly readOnly: boolean;
  readonly listening: Listening;
}

export abstract class AreaDriver<Options extends AreaOptions> extends Driver<Options> {
  static readonly operations: Operations = { read: "reads", write: "writes" };
  protected abstract readonly area: FileArea;
  private readonly listener = new HttpListener(this.options.listening, this.place.tls, {
    request: (request, response) => void this.serve(request, response),
  });

  /** Throws where the area cannot be used. */
  protected abstract check(): Promise<void>;

  override async start(): Promise<void> {
    await this.check();
    await this.listener.open();
  }

  async bind(_binding: Binding): Promise<string> {
    return this.listener.url;
  }

  async probe(_signal: AbortSignal): Promise<ProbeResult> {
    const open = this.inFlight();
    if (open > 0) return { clean: false, detail: `${open} operations are under way` };
    await this.check();
    return { clean: true, detail: "nothing is under way" };
  }

  async reset(_signal: AbortSignal): Promise<void> {
    this.listener.server.closeAllConnections();
  }

  override async stop(): Promise<void> {
    await this.listener.close();
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
