/**
 * Plain JSON-RPC, as the programs of AsyncGate and ReceiptGate send it: no `initialize`, no revision, no streams; the
 * result of a tool is the answer itself, and a refusal is an error with their code.
 */
import type { ControlPlane } from "../control-plane.ts";
import type { Offering } from "../serve.ts";

type Message = Readonly<Record<string, unknown>>;

/** null: not one of the two methods that plain programs send. */
export async function answerPlain(
  message: unknown,
  { tools, list }: Offering,
  plane: ControlPlane,
  signal: AbortSignal,
): Promise<Message | null> {
  if (!isObject(message)) return null;
  const { id = null, method, params } = message;
  const reply = (answer: Message): Message => ({ jsonrpc: "2.0", id, ...answer });
  if (method === "tools/list") return reply({ result: { tools: list } });
  if (method !== "tools/call") return null;
  const { name, arguments: args } = isObject(params) ? params : {};
  const tool = typeof name === "string" ? tools.get(name) : undefined;
  if (tool === undefined) {
    return reply({ error: { code: "unknown_tool", message: `Unknown tool ${String(name).slice(0, 128)}.` } });
  }
  const { isError, body } = await tool.run(args, plane, signal);
  if (!isError) return reply({ result: body });
  const { code, error, detail } = body;
  return reply({ error: { code: code ?? error, message: detail, details: body } });
}

/** `auth_token` of the arguments, which is a credential there. */
export function tokenIn(message: unknown): string | null {
  const { params } = isObject(message) ? message : {};
  const { arguments: args } = isObject(params) ? params : {};
  const { auth_token: token } = isObject(args) ? args : {};
  return typeof token === "string" && token !== "" ? token : null;
}

function isObject(value: unknown): value is Message {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
