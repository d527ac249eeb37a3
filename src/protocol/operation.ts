/**
 * What one operation is: its fields, how HTTP carries them, who may ask, how its input becomes a command and the reply
 * an answer. An operation has one flat set of fields; the stream, MCP and the SDK send them as one object. Over HTTP
 * those named in the path come from there, the others from the query (GET, DELETE) or the body (POST, PUT).
 */
import type { TObject } from "typebox";
import { isAudited } from "../kernel/contract/audited.ts";
import type { Command, CommandBase } from "../kernel/contract/commands.ts";
import type { Role } from "../kernel/contract/records.ts";
import type { Answer, AnswerContext } from "./answers/answer.ts";
import type { ErrorCode } from "./answers/errors.ts";
import type {
  BulkTasks,
  CreateTasks,
  HeartbeatTasks,
  Query,
  QueryReply,
  RotateTokenKeys,
  SubmitReceipts,
} from "./answers/queries.ts";
import { replyAnswer } from "./answers/reply-json.ts";
import { type Check, type Checked, checkOf } from "./schema/check.ts";
import { commandFields, decoderOf, queryDecoderOf } from "./schema/convert.ts";
import type { Fault } from "./schema/explain.ts";
import { inputs } from "./schema/from-fields.ts";
import { type Node, record, type Static, type TProperties, type TSchema } from "./schema/schema.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";
export type Tag =
  | "Agents"
  | "Acquiring"
  | "Holding"
  | "Resources"
  | "Tasks"
  | "Receipts"
  | "Artifacts"
  | "Watching"
  | "Operating";

/** What a command's input becomes: the kernel's command, or several at once. */
export type Decoded = Command | RotateTokenKeys | CreateTasks | HeartbeatTasks | SubmitReceipts | BulkTasks;

/** Input that has passed its operation's check. */
export type Input = Readonly<Record<string, unknown>>;

/** The sender of a command; its entropy is stamped by the engine. */
export type Sender = CommandBase;

export interface Route {
  readonly method: Method;
  /** Parameters in braces: "/v1/leases/{lease_id}". */
  readonly path: string;
  readonly params: TObject;
  readonly query: TObject;
  /** null where the method has none. */
  readonly body: TObject | null;
  /** The body has all the fields: none is in the path. */
  readonly isAllBody: boolean;
}

export interface ReplyShape {
  readonly status: number;
  readonly description: string;
  readonly schema: TSchema;
  readonly mediaType?: "application/json" | "text/event-stream" | "text/plain" | "application/octet-stream";
}

interface OperationBase<F extends TProperties = TProperties> extends Route {
  readonly name: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description: string;
  /** Other ways to ask the same over HTTP. */
  readonly also: readonly Route[];
  readonly roles: readonly Role[] | "anyone";
  /** All fields as one object. */
  readonly input: TObject<F>;
  /** Of these fields exactly one is given. */
  readonly exactlyOne: readonly string[];
  readonly example: Input;
  readonly replies: readonly ReplyShape[];
  /** The code of whatever is wrong with its input, where that is not for each field to say. */
  readonly faultCode: ErrorCode | null;
  /** Its body is not JSON but bytes, as they are. */
  readonly takesBytes: boolean;
  /** The list whose items count one by one for the rate limit; null: it counts once (S4). */
  readonly counted: string | null;
  /** Takes the access of others away: without keys it is not offered to models, and the CLI asks first (M6). */
  readonly locksOut: boolean;
  /** It is in the audit log when an operator or a supervisor asks for it (S7). */
  readonly isAudited: boolean;
  /** The codes of its own; those that any operation can answer are in `commonErrors`. */
  readonly errors: readonly ErrorCode[];
  check(input: unknown): Checked<Input>;
  /** What the schema cannot say, for input that has passed it; null: there is no such rule. */
  readonly refine: ((input: Input) => Fault | null) | null;
}
/** Changes something: goes through the kernel. */
export interface CommandOperation<F extends TProperties = TProperties> extends OperationBase<F> {
  readonly kind: "command";
  decode(input: Input, sender: Sender): Decoded;
  encode(reply: QueryReply, context: AnswerContext): Answer;
}
/** Only looks. */
export interface QueryOperation<F extends TProperties = TProperties> extends OperationBase<F> {
  readonly kind: "query";
  decode(input: Input, sender: Sender): Query;
  encode(reply: QueryReply, context: AnswerContext): Answer;
}
/** Is served by the edge itself: event streams, health, documents. */
export interface EdgeOperation<F extends TProperties = TProperties> extends OperationBase<F> {
  readonly kind: "edge";
}
export type Operation = CommandOperation | QueryOperation | EdgeOperation;

export const commonErrors: readonly ErrorCode[] = [
  "invalid_request",
  "unauthorized",
  "stale_epoch",
  "forbidden",
  "policy_denied",
  "tenant_unknown",
  "agent_unknown",
  "host_not_allowed",
  "origin_not_allowed",
  "csrf_failed",
  "tls_required",
  "request_timeout",
  "payload_too_large",
  "unsupported_media_type",
  "headers_too_large",
  "rate_limited",
  "quota_exceeded",
  "too_many_connections",
  "memory_exhausted",
  "shutting_down",
  "no_leader",
  "database_unavailable",
  "internal_error",
];

type InputOf<F extends TProperties> = Static<TObject<F>>;

interface Spec<F extends TProperties> {
  readonly name: string;
  /** Left out: POST for a command, GET for all others. */
  readonly method?: Method;
  readonly path: string;
  readonly also?: readonly { readonly method: Method; readonly path: string }[];
  /** Left out: those of the kernel's command of this name, or none. */
  readonly fields?: F;
  readonly exactlyOne?: readonly (keyof F & string)[];
  readonly roles: readonly Role[] | "anyone";
  readonly summary: string;
  readonly description: string;
  readonly example?: InputOf<F>;
  readonly replies: readonly ReplyShape[];
  readonly errors?: readonly ErrorCode[];
  readonly faultCode?: ErrorCode;
  readonly takesBytes?: boolean;
  readonly counted?: keyof F & string;
  readonly locksOut?: boolean;
  readonly refine?: (input: InputOf<F>) => Fault | null;
}
interface CommandSpec<F extends TProperties> extends Spec<F> {
  /** Left out: by the description of the kernel's command of this name. */
  readonly decode?: (input: InputOf<F>, sender: Sender) => Decoded;
  readonly encode?: (reply: QueryReply, context: AnswerContext) => Answer;
}
interface QuerySpec<F extends TProperties> extends Spec<F> {
  /** Left out: the fields under their names in camelCase. */
  readonly decode?: (input: InputOf<F>, sender: Sender) => Query;
}

/** Makes the operations of one tag. */
export function operationsOf(tag: Tag) {
  return {
    command<F extends TProperties>(spec: CommandSpec<F>): CommandOperation<F> {
      const { decode, encode = replyAnswer } = spec;
      const operation: CommandOperation<F> = {
        kind: "command",
        ...base(tag, "POST", spec),
        decode(input, sender) {
          // The first command compiles the decoder; all others call it directly.
          operation.decode = (decode as CommandOperation["decode"] | undefined) ?? decoderOf(spec.name);
          return operation.decode(input, sender);
        },
        encode,
      };
      return operation;
    },
    query<F extends TProperties>(spec: QuerySpec<F>): QueryOperation<F> {
      const { decode } = spec;
      return {
        kind: "query",
        ...base(tag, "GET", spec),
        decode:
          decode === undefined
            ? queryDecoderOf(spec.name, Object.keys(fieldsOf(spec)))
            : (input, sender) => decode(input as InputOf<F>, sender),
        encode: replyAnswer,
      };
    },
    edge: <F extends TProperties>(spec: Spec<F>): EdgeOperation<F> => ({ kind: "edge", ...base(tag, "GET", spec) }),
  };
}

export function ok(schema: TSchema, description: string, status = 200): ReplyShape {
  return { status, description, schema };
}

function base<F extends TProperties>(tag: Tag, usual: Method, spec: Spec<F>): OperationBase<F> {
  const { name, method = usual, path, also = [], exactlyOne = [], roles, errors = [] } = spec;
  const { faultCode = null, takesBytes = false, counted = null, locksOut = false } = spec;
  const { summary, description, example = {}, replies } = spec;
  const fields = fieldsOf(spec);
  const input = record(fields);
  const own = (spec.refine ?? null) as OperationBase["refine"];
  const refine =
    exactlyOne.length === 0 ? own : (value: Input) => wrongCount(exactlyOne, value) ?? own?.(value) ?? null;
  const plain = checkOf(input) as Check<Input>;
  const check = refine === null ? plain : refined(plain, refine);
  return {
    name,
    tag,
    summary,
    description,
    ...routeOf(method, path, fields),
    also: also.map((other) => routeOf(other.method, other.path, fields)),
    roles,
    input,
    exactlyOne,
    example: example as Input,
    replies,
    faultCode,
    takesBytes,
    counted,
    locksOut,
    isAudited: isAudited(name),
    errors: [...new Set([...errors, ...(faultCode === null ? [] : [faultCode]), ...codesOf(input as TObject)])],
    check: faultCode === null ? check : recoded(check, faultCode),
    refine,
  };
}

function fieldsOf<F extends TProperties>({ name, fields }: Spec<F>): F {
  return fields ?? (inputs(commandFields[name] ?? {}, {}) as TProperties as F);
}

/** The codes that values out of bounds are refused with, wherever in the input they stand. */
function codesOf(schema: Node): readonly ErrorCode[] {
  const { properties, items, additionalProperties: extra, "x-error": named } = schema;
  const inner = [
    ...Object.values(properties ?? {}),
    ...(items ? [items] : []),
    ...(typeof extra === "object" ? [extra] : []),
  ];
  const own = named === undefined ? [] : typeof named === "string" ? [named] : Object.values(named);
  return [...own, ...inner.flatMap(codesOf)];
}

function refined(check: Check<Input>, refine: (input: Input) => Fault | null): Check<Input> {
  return (value) => {
    const checked = check(value);
    const fault = checked.ok ? refine(checked.value) : null;
    return fault === null ? checked : { ok: false, ...fault };
  };
}

function recoded(check: Check<Input>, code: ErrorCode): Check<Input> {
  return (value) => {
    const checked = check(value);
    return checked.ok ? checked : { ...checked, code };
  };
}

function routeOf(method: Method, path: string, fields: TProperties): Route {
  const inPath = (name: string) => path.includes(`{${name}}`);
  const chosen = (wanted: boolean) =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => inPath(name) === wanted));
  const hasBody = method === "POST" || method === "PUT";
  return {
    method,
    path,
    params: record(chosen(true)),
    query: record(hasBody ? {} : chosen(false)),
    body: hasBody ? record(chosen(false)) : null,
    isAllBody: hasBody && !path.includes("{"),
  };
}

function wrongCount(names: readonly string[], input: Input): Fault | null {
  const given = names.filter((name) => input[name] !== undefined && input[name] !== null);
  if (given.length === 1) return null;
  const all = names.join(", ");
  const detail =
    given.length === 0 ? `Give one of ${all}.` : `Give only one of ${all}; ${given.join(" and ")} are given.`;
  return { code: "invalid_request", field: given[1] ?? names[0] ?? "", detail };
}
