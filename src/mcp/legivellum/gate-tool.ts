/**
 * Tools under other systems' names: their parameters in, our operations asked, their shape of answer out. What these
 * tools share: the tenant is the credential's own and a contradicting one is refused; a credential may be given as an
 * argument; and a `trace_id` is taken and not used.
 */

import type { Input } from "../../protocol/operation.ts";
import { checkOf } from "../../protocol/schema/check.ts";
import { limits } from "../../protocol/schema/limits.ts";
import {
  choice,
  integer,
  optional,
  record,
  type TProperties,
  type TSchema,
  text,
} from "../../protocol/schema/schema.ts";
import type { Body, Reply } from "../control-plane.ts";
import { inputSchemaOf, outputSchemaOf } from "../schemas.ts";
import { type Sentence, sentenceOf } from "../sentences.ts";
import {
  annotationsFor,
  keyed,
  operationNamed,
  refused,
  refusedWith,
  said,
  type Tool,
  type ToolSpec,
} from "../tool.ts";

/** Asks for an operation by name, as the caller. */
export type Ask = (operation: string, input: Input) => Promise<Reply>;

export interface GateToolSpec extends Pick<ToolSpec, "name" | "title" | "effect" | "description" | "keyField"> {
  /** All that it may ask for; the first, unless `ask` does it otherwise. */
  readonly operations: readonly [string, ...string[]];
  readonly fields: TProperties;
  /** From its fields to the operation's; left out: they are the same. */
  readonly input?: (args: Input) => Input;
  readonly ask?: (ask: Ask, input: Input) => Promise<Reply>;
  readonly shape: TSchema;
  /** From the operation's answer to its own; left out: it is the same. */
  readonly output?: (body: Body, args: Input) => Body;
  readonly sentence: Sentence;
}

const shared: TProperties = {
  tenant_id: optional(text({ maxLength: 128, description: "The credential's own, or left out." })),
  auth_token: optional(text({ minLength: 1, maxLength: 1_024, description: "A key or token, beside the header's." })),
  trace_id: optional(text({ maxLength: 256, description: "Taken, and not used." })),
};

export const words = (description: string) => optional(text({ maxLength: limits.keyLengthMax, description }));
export const many = (description: string) => optional(integer({ minimum: 1, maximum: limits.pageMax, description }));
export const principal = (description: string) => text({ minLength: 1, maxLength: limits.keyLengthMax, description });
export const receiptId = text({ minLength: 1, maxLength: limits.idLengthMax, description: "The receipt's id." });

export function gateTool(spec: GateToolSpec): Tool {
  const { name, title, effect, description, shape, output, sentence } = spec;
  const operations = spec.operations.map(operationNamed);
  const fields = { ...spec.fields, ...shared };
  const schema = record(fields);
  return {
    name,
    description,
    set: "tasks",
    operations,
    inputSchema: inputSchemaOf(fields),
    outputSchema: outputSchemaOf([{ status: 200, description: "", schema: shape }]),
    annotations: annotationsFor(title, effect ?? (operations.every(({ kind }) => kind === "query") ? "reads" : "sets")),
    async run(given, plane, signal) {
      const checked = checkOf(schema)(given ?? {});
      if (!checked.ok) return refused(checked);
      const { tenant_id: tenant, auth_token: token, trace_id: _unused, ...args } = checked.value as Input;
      if (typeof tenant === "string" && plane.tenant !== null && tenant !== plane.tenant) return refusedWith(mismatch);
      const credential = { agentId: null, agentToken: typeof token === "string" ? token : null };
      const ask: Ask = async (operationName, input) => {
        const operation = operationNamed(operationName);
        const fault = operation.check(said(input));
        if (fault.ok) return plane.ask(operation, fault.value, credential, signal);
        return { status: 400, body: { error: fault.code, detail: fault.detail, field: fault.field } };
      };
      const input = keyed(spec, said(spec.input?.(args) ?? args), plane);
      const reply = await (spec.ask?.(ask, input) ?? ask(spec.operations[0], input));
      if (reply.status >= 400) return refusedWith(reply.body);
      const body = output?.(reply.body, args) ?? reply.body;
      return { isError: false, body, sentence: sentenceOf(sentence, body) };
    },
  };
}

const mismatch: Body = {
  error: "tenant_mismatch",
  detail: "The tenant_id is not the credential's own; leave it out, or use the credential of that tenant.",
  field: "tenant_id",
};

/** It answers, so it is; what a load balancer asks is at /readyz. */
export function health(name: string, service: string): Tool {
  return gateTool({
    name,
    title: "Is it there?",
    description: "Says whether the service answers.",
    operations: ["get_ledger_head"],
    fields: {},
    shape: record({ status: choice(["healthy"]), service: text() }),
    output: () => ({ status: "healthy", service }),
    sentence: "It is well.",
  });
}
