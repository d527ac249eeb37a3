/** A program of LegiVellum: bare JSON-RPC over HTTP, without MCP's headers, that reads `result` as the answer itself. */
import assert from "node:assert/strict";
import { request } from "node:http";
import type { Body as McpBody } from "./harness.ts";

type Fields =
  | "artifact_checksum"
  | "artifact_id"
  | "artifact_location"
  | "artifact_mime"
  | "artifact_pointer"
  | "artifact_refs"
  | "artifact_role"
  | "artifact_size_bytes"
  | "artifacts"
  | "attempt"
  | "canonical_hash"
  | "chain"
  | "content"
  | "content_hash"
  | "count"
  | "cursor"
  | "expires_at"
  | "has_terminator"
  | "hash"
  | "idempotent_replay"
  | "lease_expires_at"
  | "next_cursor"
  | "next_eligible_at"
  | "ok"
  | "open_obligations"
  | "outcome"
  | "outcome_kind"
  | "payload"
  | "priority"
  | "receipts"
  | "requeued"
  | "requirements"
  | "result"
  | "root_task_id"
  | "size_bytes"
  | "started_at"
  | "tools"
  | "type";
/** What a test may look for in an answer. */
export type Body = McpBody & { readonly [F in Fields]?: unknown };

export type Headers = Readonly<Record<string, string>>;

export interface RpcError {
  readonly code: string | number;
  readonly message: string;
  readonly details?: Body;
}

interface RpcAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: { readonly id?: unknown; readonly result?: Body; readonly error?: RpcError };
}

/** `request` of Node sends no Accept by itself, as urllib does not. */
export function post(url: string, message: object, headers: Headers = {}): Promise<RpcAnswer> {
  return new Promise((resolve, reject) => {
    const all = { "content-type": "application/json", ...headers };
    const sent = request(url, { method: "POST", headers: all }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => {
        const { statusCode: status = 0, headers: answered } = response;
        resolve({ status, type: answered["content-type"] ?? "", body: JSON.parse(text) as RpcAnswer["body"] });
      });
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(message));
  });
}

export function plainClient(url: string, headers: Headers = {}) {
  const call = (name: string, args: object = {}): Promise<RpcAnswer> =>
    post(url, { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name, arguments: args } }, headers);
  return {
    call,
    async run(name: string, args: object = {}): Promise<Body> {
      const { status, body } = await call(name, args);
      assert.equal(status, 200, JSON.stringify(body));
      assert.ok(body.result !== undefined, `${name}: ${JSON.stringify(body.error)}`);
      return body.result;
    },
    async refused(name: string, args: object = {}): Promise<RpcError> {
      const { body } = await call(name, args);
      assert.ok(body.error !== undefined, `${name}: ${JSON.stringify(body.result)}`);
      return body.error;
    },
  };
}
