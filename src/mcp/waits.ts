/**
 * A wait that costs a model no turn: MCP's tasks extension (`io.modelcontextprotocol/tasks`). Where the client offers it, an
 * acquire that has to wait is answered with a task, which the client polls by itself until there is a verdict. The task is
 * the request: nothing is stored beside it, so any server and any restart can answer for it.
 */
import { type CallToolResult, ProtocolError, ProtocolErrorCode, type Server } from "@modelcontextprotocol/server";
import type { Body, ControlPlane } from "./control-plane.ts";
import { textIn } from "./sentences.ts";
import { operationNamed, type Tool, type ToolResult } from "./tool.ts";

export const tasksExtension = "io.modelcontextprotocol/tasks";

/** Those whose answer can be WAIT or STANDBY. */
export const waitTools: ReadonlySet<string> = new Set(["acquire_leases", "await_request"]);

/** How often a client should ask: well within the time in which a grant must be collected (W8). */
const pollIntervalMs = 1_000;

const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

export function takesTasks(envelope: object | undefined): boolean {
  const { [capabilitiesKey]: capabilities } = (envelope ?? {}) as { readonly [capabilitiesKey]?: unknown };
  const { extensions } = (capabilities ?? {}) as { readonly extensions?: Readonly<Record<string, unknown>> };
  return extensions?.[tasksExtension] !== undefined;
}

/** The client polls, so the first answer is not held back; unless the model says how long. */
export function withoutHold(args: unknown): unknown {
  return typeof args === "object" && args !== null && !("hold_ms" in args) ? { ...args, hold_ms: 0 } : args;
}

/**
 * The task for an answer that says WAIT; null for any other, and for a caller that shows a token with its arguments: its
 * client would poll without it.
 */
export function waitOf(result: ToolResult, args: unknown) {
  const { request_id: requestId } = result.body;
  const hasToken = typeof args === "object" && args !== null && "agent_token" in args;
  if (!isWait(result) || typeof requestId !== "string" || hasToken || "agent_token" in result.body) return null;
  const taskId = `${requestId}~${Date.now().toString(36)}`;
  // The SDK types every result of a tool with content; a client that takes tasks does not read it.
  return { resultType: "task", content: [], ...working(taskId, result) };
}

export function contentOf({ isError, body, sentence }: ToolResult, plane: ControlPlane): CallToolResult {
  return {
    content: [
      { type: "text", text: [...plane.notices(), sentence].join("\n") },
      // For the clients that show a model nothing but text.
      { type: "text", text: JSON.stringify(body) },
    ],
    structuredContent: { ...body },
    ...(isError && { isError }),
  };
}

export function serveWaits(server: Server, tools: ReadonlyMap<string, Tool>, plane: ControlPlane): void {
  const waiting = tools.get("await_request");
  if (waiting === undefined) return;
  const params = { params: taskParams };
  server.setRequestHandler("tasks/get", params, async ({ taskId }, { mcpReq }) => {
    const args = { request_id: requestOf(taskId), hold_ms: 0 };
    const result = await waiting.run(args, plane, mcpReq.signal);
    assertKnown(result.body);
    if (isWait(result)) return working(taskId, result);
    return { ...taskOf(taskId), status: "completed", statusMessage: result.sentence, result: contentOf(result, plane) };
  });
  server.setRequestHandler("tasks/cancel", params, async ({ taskId }, { mcpReq }) => {
    const input = { request_id: requestOf(taskId) };
    const nobody = { agentId: null, agentToken: null };
    const { body } = await plane.ask(operationNamed("cancel_request"), input, nobody, mcpReq.signal);
    assertKnown(body);
    return {};
  });
  // Nothing is ever asked of the client, so there is nothing that it could answer.
  server.setRequestHandler("tasks/update", params, () => ({}));
}

function isWait({ body: { verdict } }: ToolResult): boolean {
  return verdict === "WAIT" || verdict === "STANDBY";
}

function working(taskId: string, { body, sentence }: { readonly body: Body; readonly sentence: string }) {
  return { ...taskOf(taskId), status: "working", statusMessage: sentence, verdict: textIn(body, "verdict") };
}

function taskOf(taskId: string) {
  const now = new Date().toISOString();
  return { taskId, createdAt: createdAt(taskId), lastUpdatedAt: now, ttlMs: null, pollIntervalMs };
}

function createdAt(taskId: string): string {
  const ms = Number.parseInt(taskId.slice(taskId.lastIndexOf("~") + 1), 36);
  return new Date(Number.isSafeInteger(ms) && ms > 0 && ms < 8.64e15 ? ms : 0).toISOString();
}

function requestOf(taskId: string): string {
  const end = taskId.lastIndexOf("~");
  return end < 0 ? taskId : taskId.slice(0, end);
}

function assertKnown({ error }: Body): void {
  if (error !== "request_unknown") return;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, "Unknown task; its request is over and forgotten.");
}

/** What all three methods need of their parameters, in the form that the SDK takes. */
const taskParams = {
  "~standard": {
    version: 1 as const,
    vendor: "leasehold",
    validate(value: unknown) {
      const { taskId } = (value ?? {}) as { readonly taskId?: unknown };
      if (typeof taskId === "string" && taskId.length <= 512) return { value: { taskId } };
      return { issues: [{ message: "taskId must be a string of at most 512 characters", path: ["taskId"] }] };
    },
    types: undefined as unknown as { readonly input: { taskId: string }; readonly output: { taskId: string } },
  },
};
