/** Clients of the official SDK, over HTTP in each revision and over stdio, with shortened results. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { Client, StreamableHTTPClientTransport, type Tool } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { binary } from "../cli/harness.ts";

export const revisions = ["2025-11-25", "2026-07-28"] as const;
export type Revision = (typeof revisions)[number];

/** The fields of any result that tests read. */
export interface Body {
  readonly agent_id?: unknown;
  readonly agent_token?: unknown;
  readonly directives?: unknown;
  readonly effects?: unknown;
  readonly epoch?: unknown;
  readonly error?: unknown;
  readonly field?: unknown;
  readonly id?: unknown;
  readonly labels?: unknown;
  readonly lease_id?: unknown;
  readonly leases?: unknown;
  readonly obligations?: unknown;
  readonly offers?: unknown;
  readonly open_obligations?: unknown;
  readonly outcome_kind?: unknown;
  readonly payload?: unknown;
  readonly phase?: unknown;
  readonly receipt_id?: unknown;
  readonly receipts?: unknown;
  readonly request_id?: unknown;
  readonly resource?: unknown;
  readonly service?: unknown;
  readonly status?: unknown;
  readonly task?: unknown;
  readonly task_id?: unknown;
  readonly tasks?: unknown;
  readonly tool?: unknown;
  readonly verdict?: unknown;
  readonly waiting_for?: unknown;
  readonly warnings?: unknown;
}

export interface ToolAnswer {
  readonly isError: boolean;
  readonly body: Body;
  /** The text of the result, with pending notices before it. */
  readonly text: string;
}

export interface Caller {
  readonly client: Client;
  readonly revision: string | undefined;
  tools(): Promise<readonly Tool[]>;
  call(name: string, args?: object): Promise<ToolAnswer>;
  /** The same for a call that must succeed. */
  do(name: string, args?: object): Promise<Body>;
  close(): Promise<void>;
}

export interface HttpOptions {
  readonly revision?: Revision;
  readonly path?: string;
  readonly key?: string;
}

export async function overHttp(t: TestContext, url: string, options: HttpOptions = {}): Promise<Caller> {
  const caller = await connectHttp(url, options);
  t.after(() => caller.close());
  return caller;
}

/** For a test that closes it itself. */
export function connectHttp(url: string, options: HttpOptions = {}): Promise<Caller> {
  const { revision = "2026-07-28", path = "/mcp?toolsets=all", key } = options;
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const transport = new StreamableHTTPClientTransport(new URL(`${url}${path}`), { requestInit: { headers } });
  return connected(transport, revision);
}

export interface StdioOptions {
  readonly revision?: Revision;
  readonly url: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Process extends Caller {
  readonly pid: number;
}

export async function overStdio(t: TestContext, options: StdioOptions): Promise<Process> {
  const { revision = "2026-07-28", url, args = [], env = {} } = options;
  const { PATH = "", HOME = "" } = process.env;
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [binary, "mcp", "--toolsets", "all", ...args],
    env: { PATH, HOME, LEASEHOLD_URL: url, ...env },
    stderr: "ignore",
  });
  const caller = await connected(transport, revision);
  t.after(() => caller.close());
  assert.ok(transport.pid !== null);
  return { ...caller, pid: transport.pid };
}

async function connected(transport: Parameters<Client["connect"]>[0], revision: Revision): Promise<Caller> {
  const mode = revision === "2026-07-28" ? { pin: revision } : "legacy";
  const client = new Client({ name: "a-test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transport);
  const caller: Caller = {
    client,
    revision: client.getNegotiatedProtocolVersion(),
    tools: async () => (await client.listTools()).tools,
    async call(name, args = {}) {
      const { isError = false, structuredContent, content } = await client.callTool({ name, arguments: { ...args } });
      const [said] = content;
      assert.ok(said?.type === "text");
      return { isError, body: structuredContent as Body, text: said.text };
    },
    async do(name, args) {
      const { isError, body, text } = await caller.call(name, args);
      assert.equal(isError, false, `${name}: ${text}`);
      return body;
    },
    close: () => client.close(),
  };
  return caller;
}

export function mutates(...resources: readonly string[]) {
  return resources.map((resource) => ({ predicate: "MUTATES", resource }));
}

export function firstLease(body: Body): { readonly id: string; readonly fence: number; readonly ttl: number } {
  const [lease] = body.leases as readonly { readonly id: string; readonly fence: number; readonly ttl: number }[];
  assert.ok(lease !== undefined);
  return lease;
}
