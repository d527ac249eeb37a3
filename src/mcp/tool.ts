/** What a tool is, and how one is made of an operation: its schemas, its hints, and the way from arguments to an answer. */

import { errors, isErrorCode } from "../protocol/answers/errors.ts";
import type { Input, Operation, ReplyShape } from "../protocol/operation.ts";
import { findOperation } from "../protocol/operations.ts";
import { checkOf } from "../protocol/schema/check.ts";
import type { Fault } from "../protocol/schema/explain.ts";
import { agentId } from "../protocol/schema/fields.ts";
import { optional, record, type TProperties, text } from "../protocol/schema/schema.ts";
import type { Answered, Body, Door } from "./door.ts";
import { inputSchemaOf, type ObjectSchema, outputSchemaOf } from "./schemas.ts";
import { refusalSentence } from "./sentences.ts";

export const toolsets = ["leases", "tasks", "resources", "operating"] as const;
export type Toolset = (typeof toolsets)[number];

/** What a call does to the world: nothing, something new each time, the same however often, or something final. */
export type Effect = "reads" | "adds" | "sets" | "ends";

export interface Annotations {
  readonly title: string;
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  /** Nothing outside of the control plane is touched. */
  readonly openWorldHint: false;
}

export interface Told {
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
  readonly annotations: Annotations;
  run(args: unknown, door: Door, signal: AbortSignal): Promise<Told>;
}

export interface ToolSpec {
  readonly name: string;
  readonly title: string;
  readonly set: Toolset;
  readonly effect: Effect;
  readonly description: string;
  readonly operation: string;
  /** The tool's own fields where they are not the operation's. */
  readonly fields?: TProperties;
  /** From the tool's fields to the operation's. */
  readonly input?: (args: Input, door: Door) => Input | Promise<Input>;
  /** From the operation's answer to the tool's, with the shape that it then has. */
  readonly output?: { readonly shape: ReplyShape; of(answered: Answered): Body };
  /** In which field an idempotency key goes. */
  readonly keyField?: string;
  readonly sentence: (body: Body, args: Input) => string;
}

const agentToken = optional(
  text({
    minLength: 1,
    maxLength: 1_024,
    description: "The `agent_token` of register_agent or resume; only where your key may not act for the agent itself.",
  }),
);

export function toolOf(spec: ToolSpec): Tool {
  const { name, title, set, effect, description, sentence, output } = spec;
  const operation = operationNamed(spec.operation);
  const own: TProperties = spec.fields ?? operation.input.properties;
  const isForAgent = "agent_id" in own && operation.roles !== "anyone" && operation.roles.includes("agent");
  const takesToken = operation.roles !== "anyone" && operation.roles.includes("agent") && name !== "register_agent";
  const namesItsAgent = isForAgent && isRequired(operation, "agent_id");
  const fields: TProperties = {
    ...own,
    ...(namesItsAgent && { agent_id: optional(agentId) }),
    ...(takesToken && { agent_token: agentToken }),
  };
  const schema = record(fields);
  return {
    name,
    description,
    set,
    operations: [operation],
    inputSchema: inputSchemaOf(fields),
    outputSchema: outputSchemaOf(output === undefined ? operation.replies : [output.shape]),
    annotations: annotationsFor(title, effect),
    async run(args, door, signal) {
      const checked = checkOf(schema)(args ?? {});
      if (!checked.ok) return refused(checked);
      const { agent_token: token, ...given } = checked.value as Input;
      const shownToken = typeof token === "string" ? token : null;
      const { agent_id: wished } = given;
      const named = typeof wished === "string" ? wished : null;
      const actsFor = named ?? (namesItsAgent ? await door.agentId(shownToken) : null);
      if (namesItsAgent && actsFor === null) return refused(noAgent);
      const whole = namesItsAgent ? { ...given, agent_id: actsFor } : given;
      const input = keyed(spec, said((await spec.input?.(whole, door)) ?? whole), door);
      const fault = operation.check(input);
      if (!fault.ok) return refused(fault);
      const answered = await door.ask(operation, input, { agentId: actsFor, agentToken: shownToken }, signal);
      if (answered.status >= 400) return refusedWith(answered.body);
      const body = output?.of(answered) ?? answered.body;
      return { isError: false, body, sentence: sentence(body, whole) };
    },
  };
}

export function operationNamed(name: string): Operation {
  const operation = findOperation(name);
  if (operation === undefined) throw new TypeError(`there is no operation ${name}`);
  return operation;
}

export function annotationsFor(title: string, effect: Effect): Annotations {
  return {
    title,
    readOnlyHint: effect === "reads",
    destructiveHint: effect === "ends",
    idempotentHint: effect !== "adds",
    openWorldHint: false,
  };
}

export function refused({ code, field, detail }: Fault): Told {
  return refusedWith({ error: code, detail, ...(field !== "" && { field }) });
}

/** DIE and PAUSED come this way too: whoever does not hold what it asked for must not take it for a success. */
export function refusedWith(body: Body): Told {
  const { error } = body;
  const whatToDo = typeof error === "string" && isErrorCode(error) ? errors[error].whatToDo : "";
  return { isError: true, body, sentence: refusalSentence(body, whatToDo) };
}

const noAgent: Fault = {
  code: "invalid_request",
  field: "agent_id",
  detail: "agent_id is missing; call register_agent first, and send the agent_id that it gives.",
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

function keyed({ name, keyField }: ToolSpec, input: Input, door: Door): Input {
  if (keyField === undefined || (input[keyField] !== undefined && input[keyField] !== null)) return input;
  const key = door.keyFor(name, input);
  return key === null ? input : { ...input, [keyField]: key };
}

function isRequired({ input }: Operation, field: string): boolean {
  return ((input as { readonly required?: readonly string[] }).required ?? []).includes(field);
}
