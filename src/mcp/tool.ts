/** What a tool is, and how one is made of an operation: its schemas, its hints, and the way from arguments to an answer. */

import { errors, isErrorCode } from "../protocol/answers/errors.ts";
import type { Input, Operation, ReplyShape } from "../protocol/operation.ts";
import { findOperation } from "../protocol/operations.ts";
import { checkOf } from "../protocol/schema/check.ts";
import type { Fault } from "../protocol/schema/explain.ts";
import { agentId } from "../protocol/schema/fields.ts";
import { optional, record, type TProperties, text } from "../protocol/schema/schema.ts";
import type { Body, ControlPlane } from "./control-plane.ts";
import { inputSchemaOf, type ObjectSchema, outputSchemaOf } from "./schemas.ts";
import { refusalSentence, type Sentence, sentenceOf, textIn } from "./sentences.ts";
import type { Toolset } from "./toolsets.ts";

/** What a call does to the world: nothing, something new each time, the same however often, or something final. */
export type Effect = "reads" | "adds" | "sets" | "ends";

export interface ToolResult {
  readonly isError: boolean;
  readonly body: Body;
  /** One short sentence, for a model that reads nothing else. */
  readonly sentence: string;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly set: Toolset;
  /** The operations that it may ask for; who may none of them is not shown the tool. */
  readonly operations: readonly Operation[];
  readonly inputSchema: ObjectSchema;
  readonly outputSchema: ObjectSchema;
  readonly annotations: ReturnType<typeof annotationsFor>;
  run(args: unknown, plane: ControlPlane, signal: AbortSignal): Promise<ToolResult>;
}

export interface ToolSpec {
  readonly name: string;
  readonly title: string;
  /** If it is another than that of the list. */
  readonly set?: Toolset;
  /** Left out: "reads" for a query, "sets" for a command. */
  readonly effect?: Effect;
  readonly description: string;
  /** The operation, if its name is another than the tool's. */
  readonly operation?: string;
  /** The tool's own fields where they are not the operation's. */
  readonly fields?: TProperties;
  /** From the tool's fields to the operation's. */
  readonly input?: (args: Input, plane: ControlPlane) => Input | Promise<Input>;
  /** From the operation's answer to the tool's, with the shape that it then has. */
  readonly output?: { readonly shape: ReplyShape; of(body: Body): Body };
  /** In which field an idempotency key goes. */
  readonly keyField?: string;
  /** A caller that names no agent, and is none, becomes one. */
  readonly registers?: boolean;
  /** What is sent first where the answer is this refusal; then the call is made again. */
  readonly remedy?: { readonly code: string; readonly input: (input: Input) => Input };
  readonly sentence: Sentence;
}

const agentToken = optional(
  text({
    minLength: 1,
    maxLength: 1_024,
    description: "The `agent_token` of register_agent or resume; only where your key may not act for the agent itself.",
  }),
);

export function toolsIn(set: Toolset, specs: readonly ToolSpec[]): readonly Tool[] {
  return specs.map((spec) => toolOf(set, spec));
}

function toolOf(set: Toolset, spec: ToolSpec): Tool {
  const { name, title, effect, description, sentence, output } = spec;
  const operation = operationNamed(spec.operation ?? name);
  const own: TProperties = spec.fields ?? operation.input.properties;
  const isForAgents = operation.roles !== "anyone" && operation.roles.includes("agent");
  const takesToken = isForAgents && name !== "register_agent";
  const namesItsAgent = "agent_id" in own && isForAgents && isRequired(operation, "agent_id");
  const fields: TProperties = {
    ...own,
    ...(namesItsAgent && { agent_id: optional(agentId) }),
    ...(takesToken && { agent_token: agentToken }),
  };
  const schema = record(fields);
  const isAsAsked = spec.fields === undefined && spec.input === undefined;
  return {
    name,
    description,
    set: spec.set ?? set,
    operations: [operation],
    inputSchema: inputSchemaOf(fields),
    outputSchema: outputSchemaOf(output === undefined ? operation.replies : [output.shape]),
    annotations: annotationsFor(title, effect ?? (operation.kind === "query" ? "reads" : "sets")),
    async run(args, plane, signal) {
      const checked = checkOf(schema)(args ?? {});
      if (!checked.ok) return refused(checked);
      const { agent_token: token, ...given } = checked.value as Input;
      const shownToken = typeof token === "string" ? token : null;
      const { agent_id: wished } = given;
      const named = typeof wished === "string" ? wished : null;
      const known = named ?? (namesItsAgent ? await plane.agentId(shownToken) : null);
      const isNew = namesItsAgent && known === null && spec.registers === true;
      const joined = isNew ? await register(plane, signal) : null;
      if (joined?.isError === true) return joined;
      const actsFor = known ?? (joined === null ? null : textIn(joined.body, "agent_id"));
      if (namesItsAgent && actsFor === null) return refused(noAgent);
      const complete = namesItsAgent ? { ...given, agent_id: actsFor } : given;
      const input = keyed(spec, said((await spec.input?.(complete, plane)) ?? complete), plane);
      // Arguments that are the operation's own are not checked twice; what its schema cannot say is left.
      const fault = isAsAsked ? (operation.refine?.(input) ?? null) : null;
      if (fault !== null) return refused({ ...fault, code: operation.faultCode ?? fault.code });
      const whole = isAsAsked ? null : operation.check(input);
      if (whole?.ok === false) return refused(whole);
      const agentToken = shownToken ?? (joined === null ? null : textIn(joined.body, "agent_token"));
      const ask = (asked: Input) => plane.ask(operation, asked, { agentId: actsFor, agentToken }, signal);
      let reply = await ask(input);
      const { error } = reply.body;
      if (spec.remedy !== undefined && error === spec.remedy.code) {
        const first = await ask(spec.remedy.input(input));
        reply = first.status >= 400 ? first : await ask(input);
      }
      const result = reply.status >= 400 ? refusedWith(reply.body) : succeeded(output?.of(reply.body) ?? reply.body);
      return joined === null ? result : introduced(result, joined);
    },
  };

  function succeeded(body: Body): ToolResult {
    return { isError: false, body, sentence: sentenceOf(sentence, body) };
  }
}

async function register(plane: ControlPlane, signal: AbortSignal): Promise<ToolResult> {
  const operation = operationNamed("register_agent");
  const { status, body } = await plane.ask(operation, {}, { agentId: null, agentToken: null }, signal);
  if (status >= 400) return refusedWith(body);
  const { agent_id, agent_token } = body;
  return {
    isError: false,
    body: { agent_id, agent_token },
    sentence: `You are ${textIn(body, "agent_id")}: send this agent_id with every further call.`,
  };
}

/** The answer to a caller that has just become an agent, with who it is. */
function introduced(
  { isError, body, sentence }: ToolResult,
  { body: joined, sentence: words }: ToolResult,
): ToolResult {
  return { isError, body: { ...body, ...joined }, sentence: `${words} ${sentence}` };
}

export function operationNamed(name: string): Operation {
  const operation = findOperation(name);
  if (operation === undefined) throw new TypeError(`unknown operation ${name}`);
  return operation;
}

export function annotationsFor(title: string, effect: Effect) {
  return {
    title,
    readOnlyHint: effect === "reads",
    destructiveHint: effect === "ends",
    idempotentHint: effect !== "adds",
    // Nothing outside of the control plane is touched.
    openWorldHint: false,
  };
}

export function refused({ code, field, detail }: Fault): ToolResult {
  return refusedWith({ error: code, detail, ...(field !== "" && { field }) });
}

/** DIE and PAUSED are errors too: a caller that holds nothing must not take them for a success. */
export function refusedWith(body: Body): ToolResult {
  const { error } = body;
  const whatToDo = typeof error === "string" && isErrorCode(error) ? errors[error].whatToDo : "";
  return { isError: true, body, sentence: refusalSentence(body, whatToDo) };
}

const noAgent: Fault = {
  code: "invalid_request",
  field: "agent_id",
  detail: "agent_id is missing; acquire_leases or register_agent gives you one: send it with every call.",
};

/** What was left out, or null, is filled. */
export function filled(input: Input, defaults: Input): Input {
  const left = Object.entries(defaults).filter(([name]) => input[name] === undefined || input[name] === null);
  return { ...input, ...Object.fromEntries(left) };
}

/** What is not said is not sent. */
export function said(input: Input): Input {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
}

export function keyed(
  { name, keyField }: Pick<ToolSpec, "name" | "keyField">,
  input: Input,
  plane: ControlPlane,
): Input {
  if (keyField === undefined || (input[keyField] !== undefined && input[keyField] !== null)) return input;
  const key = plane.keyFor(name, input);
  return key === null ? input : { ...input, [keyField]: key };
}

function isRequired({ input }: Operation, field: string): boolean {
  return ((input as { readonly required?: readonly string[] }).required ?? []).includes(field);
}
