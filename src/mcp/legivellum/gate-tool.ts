/**
 * Tools under other systems' names: their parameters in, our operations asked, their shape of answer out. What these
 * tools share: the tenant is the credential's own and a contradicting one is refused; a credential may be given as an
 * argument; and a `trace_id` is taken and not used.
 */

import type { Input } from "../../protocol/operation.ts";
import { checkOf } from "../../protocol/schema/check.ts";
import { optional, record, type TProperties, type TSchema, text } from "../../protocol/schema/schema.ts";
import type { Body, ControlPlane, Reply } from "../control-plane.ts";
import { inputSchemaOf, outputSchemaOf } from "../schemas.ts";
import {
  annotationsFor,
  type Effect,
  operationNamed,
  refused,
  refusedWith,
  said,
  type Tool,
  type ToolResult,
} from "../tool.ts";

/** What a tool may do: ask for operations by name, as the caller. */
export interface Asking {
  ask(operation: string, input: Input): Promise<Reply>;
  keyFor(input: Input): string | null;
}

/** The tool's answer, or an operation's refusal as it came. */
export type GateAnswer = { readonly body: Body; readonly sentence: string } | { readonly refusal: Body };

export interface GateToolSpec {
  readonly name: string;
  readonly title: string;
  /** Left out: "reads" if all its operations are queries, else "sets". */
  readonly effect?: Effect;
  readonly description: string;
  /** All that it may ask for. */
  readonly operations: readonly string[];
  readonly fields: TProperties;
  readonly shape: TSchema;
  run(args: Input, asking: Asking): Promise<GateAnswer>;
}

const shared: TProperties = {
  tenant_id: optional(text({ maxLength: 128, description: "The credential's own, or left out." })),
  auth_token: optional(text({ minLength: 1, maxLength: 1_024, description: "A key or token, beside the header's." })),
  trace_id: optional(text({ maxLength: 256, description: "Taken, and not used." })),
};

export function gateTool(spec: GateToolSpec): Tool {
  const { name, title, effect, description, shape } = spec;
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
    async run(args, plane, signal): Promise<ToolResult> {
      const checked = checkOf(schema)(args ?? {});
      if (!checked.ok) return refused(checked);
      const { tenant_id: tenant, auth_token: token, trace_id: _unused, ...rest } = checked.value as Input;
      if (isOtherTenant(tenant, plane)) return refusedWith(mismatch);
      const credential = { agentId: null, agentToken: typeof token === "string" ? token : null };
      const result = await spec.run(said(rest), {
        async ask(operationName, input) {
          const operation = operationNamed(operationName);
          const fault = operation.check(said(input));
          if (fault.ok) return plane.ask(operation, fault.value, credential, signal);
          return { status: 400, body: { error: fault.code, detail: fault.detail, field: fault.field } };
        },
        keyFor: (input) => plane.keyFor(name, input),
      });
      if ("refusal" in result) return refusedWith(result.refusal);
      return { isError: false, ...result };
    },
  };
}

/** What the operation answered, in this tool's shape. */
export function passed(answered: Reply, shaped: (body: Body) => Body, sentence: (body: Body) => string): GateAnswer {
  if (answered.status >= 400) return { refusal: answered.body };
  const body = shaped(answered.body);
  return { body, sentence: sentence(body) };
}

export function asItIs(body: Body): Body {
  return body;
}

export function inMs(seconds: unknown): number | undefined {
  return typeof seconds === "number" ? seconds * 1_000 : undefined;
}

function isOtherTenant(tenant: unknown, plane: ControlPlane): boolean {
  return typeof tenant === "string" && plane.tenant !== null && tenant !== plane.tenant;
}

const mismatch: Body = {
  error: "tenant_mismatch",
  detail: "The tenant_id is not the credential's own; leave it out, or use the credential of that tenant.",
  field: "tenant_id",
};
