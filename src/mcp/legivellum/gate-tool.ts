/**
 * Tools under other systems' names: their parameters in, our operations asked, their shape of answer out. What these
 * tools share: the tenant is the credential's own and a contradicting one is refused; a credential may be given as an
 * argument; and a `trace_id` is taken and not used.
 */

import type { Input, Operation } from "../../protocol/operation.ts";
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
import type { Body, Credential, Depot, Reply } from "../control-plane.ts";
import { inputSchemaOf, outputSchemaOf } from "../schemas.ts";
import { type Sentence, sentenceOf } from "../sentences.ts";
import {
  annotationsFor,
  keyed,
  operationNamed,
  refusedWith,
  said,
  type Tool,
  type ToolResult,
  type ToolSpec,
} from "../tool.ts";
import { refusalIn } from "./vocabulary.ts";

/** Asks for an operation by name, as the caller. */
export type Ask = (operation: string, input: Input) => Promise<Reply>;

/** What an answer is made of, beside its body and the arguments. */
export interface AnswerContext {
  readonly status: number;
  /** The credential's own; empty where only the server knows it. */
  readonly tenant: string;
}

export interface GateToolSpec extends Pick<ToolSpec, "name" | "title" | "effect" | "description" | "keyField"> {
  /** All that it may ask for; the first, unless `ask` does it otherwise. */
  readonly operations: readonly [string, ...string[]];
  readonly fields: TProperties;
  /** From its fields to the operation's; left out: they are the same. */
  readonly input?: (args: Input) => Input;
  readonly ask?: (ask: Ask, input: Input) => Promise<Reply>;
  /** For what is in no operation's input: artifacts. It is asked instead. */
  readonly depot?: (depot: Depot, input: Input, credential: Credential) => Promise<Reply>;
  readonly shape: TSchema;
  /** From the operation's answer to its own; left out: it is the same. */
  readonly output?: (body: Body, args: Input, context: AnswerContext) => Body;
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
export const cursorField = optional(
  text({ maxLength: limits.cursorLengthMax, description: "The cursor of the page before." }),
);
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
    annotations: annotationsFor(title, effect ?? (operations.every(reads) ? "reads" : "sets")),
    async run(given, plane, signal) {
      const checked = checkOf(schema)(given ?? {});
      if (!checked.ok) {
        const { code, detail, field } = checked;
        return refusedIn({ error: code, detail, ...(field !== "" && { field }) });
      }
      const { tenant_id: tenant, auth_token: token, trace_id: _unused, ...args } = checked.value as Input;
      if (typeof tenant === "string" && plane.tenant !== null && tenant !== plane.tenant) return refusedIn(mismatch);
      const credential = { agentId: null, agentToken: typeof token === "string" ? token : null };
      const ask: Ask = async (operationName, input) => {
        const operation = operationNamed(operationName);
        const fault = operation.check(said(input));
        if (fault.ok) return plane.ask(operation, fault.value, credential, signal);
        return { status: 400, body: { error: fault.code, detail: fault.detail, field: fault.field } };
      };
      const input = keyed(spec, said(spec.input?.(args) ?? args), plane);
      const reply = await (spec.depot === undefined
        ? (spec.ask?.(ask, input) ?? ask(spec.operations[0], input))
        : plane.depot === null
          ? { status: 404, body: noDepot }
          : spec.depot(plane.depot, input, credential));
      const { phase = null } = spec.operations.includes("submit_receipt") ? input : {};
      if (reply.status >= 400) return refusedIn(reply.body, phase);
      const answered = { status: reply.status, tenant: plane.tenant ?? "" };
      const body = output?.(reply.body, args, answered) ?? reply.body;
      return { isError: false, body, sentence: sentenceOf(sentence, body) };
    },
  };
}

function reads({ kind, method }: Operation): boolean {
  return kind === "query" || (kind === "edge" && method === "GET");
}

function refusedIn(body: Body, phase: unknown = null): ToolResult {
  return refusedWith(refusalIn(body, phase));
}

const noDepot: Body = { error: "not_found", detail: "There is no store of artifacts in reach." };

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
    shape: record({ status: choice(["healthy"]), service: text(), version: text(), instance_id: text() }),
    output: (_body, _args, { tenant }) => ({ status: "healthy", service, version: "1", instance_id: tenant }),
    sentence: "It is well.",
  });
}
