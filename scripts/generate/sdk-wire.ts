/**
 * Writes src/sdk/wire.ts: the operations, their types and the error codes as plain TypeScript, read off src/protocol.
 * So the SDK is typed from the same schemas as the server, and brings none of their library along.
 */
import { errorCodes, errors } from "../../src/protocol/answers/errors.ts";
import type { Operation } from "../../src/protocol/operation.ts";
import { operations } from "../../src/protocol/operations.ts";
import { gatewayStatuses } from "../../src/protocol/resources/gateway-codes.ts";
import type { Node } from "../../src/protocol/schema/schema.ts";
import { eventTypes, leaseStates, predicates, roles, wireAgentStates } from "../../src/protocol/schema/vocabulary.ts";

type Direction = "input" | "answer";

/** Closed lists that have a name of their own, so that they are not spelled out at every field. */
const unions: ReadonlyMap<string, string> = new Map([
  [unionText(predicates), "Predicate"],
  [unionText(leaseStates), "LeaseState"],
  [unionText(wireAgentStates), "AgentState"],
  [unionText(roles), "Role"],
]);

export function wireText(): string {
  const named = new Map<string, string>();
  const callable = operations.filter(isCallable);
  const inputs = callable.map(({ name, input }) => `  readonly ${name}: ${typeText(input, "input", named)};`);
  const answers = callable.map((operation) => `  readonly ${operation.name}: ${answerText(operation, named)};`);
  const routes = callable.map(({ name, method, path }) => `  ${name}: { method: "${method}", path: "${path}" },`);
  const retryable = errorCodes.map((code) => `  ${code}: ${errors[code].retryable},`);
  const gatewayCodes = Object.entries(gatewayStatuses);
  const statuses = gatewayCodes.map(([code, status]) => `  ${code}: ${status},`);
  return [
    "/** Written by scripts/generate.ts from src/protocol. Run `npm run generate` to write it again. */",
    "",
    ...[...unions].map(([text, name]) => `export type ${name} = ${text};`),
    ...[...named.values()].sort(),
    "",
    "/** What each operation takes. */",
    `export interface OperationInputs {\n${inputs.join("\n")}\n}`,
    "",
    "/** What each operation answers where it is not refused. */",
    `export interface OperationAnswers {\n${answers.join("\n")}\n}`,
    "",
    `export interface Route { readonly method: "GET" | "POST" | "PUT" | "DELETE"; readonly path: string }`,
    "",
    "/** Fields that the path does not name go into the query (GET, DELETE) or the body (POST, PUT). */",
    `export const routes: Readonly<Record<keyof OperationInputs, Route>> = {\n${routes.join("\n")}\n};`,
    "",
    `export type ErrorCode = ${errorCodes.map((code) => `| "${code}"`).join(" ")};`,
    "",
    "/** Whether the same request, sent again later, can succeed. */",
    `export const retryable: Readonly<Record<ErrorCode, boolean>> = {\n${retryable.join("\n")}\n};`,
    "",
    `export type GatewayCode = ${gatewayCodes.map(([code]) => `| "${code}"`).join(" ")};`,
    "",
    "/** What the gateways of cells refuse and fail with, and the status of that in HTTP. */",
    `export const gatewayStatuses: Readonly<Record<GatewayCode, number>> = {\n${statuses.join("\n")}\n};`,
    "",
    `export type EventType = ${eventTypes.map((type) => `| "${type}"`).join(" ")};`,
    "",
  ].join("\n");
}

/** What is asked and answered in JSON, once: not the streams, not the bytes of backups and artifacts. */
function isCallable({ replies, takesBytes }: Operation): boolean {
  const isJson = (mediaType: string | undefined) => (mediaType ?? "application/json") === "application/json";
  return !takesBytes && replies.every(({ status, mediaType }) => status !== 101 && isJson(mediaType));
}

function answerText({ replies }: Operation, named: Map<string, string>): string {
  const good = replies.filter(({ status }) => status < 300);
  return [...new Set(good.map(({ schema }) => typeText(schema, "answer", named)))].join(" | ");
}

/** A schema with a title becomes a type of that name; `named` gathers them. */
function typeText(node: Node, direction: Direction, named: Map<string, string>): string {
  const { title, type } = node;
  if (title === undefined) return bareText(node, direction, named);
  if (Array.isArray(type) && type.includes("null") && type.length === 2)
    return `${typeText({ ...node, type: type.filter((one) => one !== "null") }, direction, named)} | null`;
  const name = direction === "input" && title !== "Intent" && title !== "Assumption" ? `${title}Input` : title;
  if (!named.has(name)) {
    named.set(name, ""); // So that a shape that holds itself ends.
    const text = bareText(node, directionOf(title, direction), named);
    named.set(name, text.startsWith("{") ? `export interface ${name} ${text}` : `export type ${name} = ${text};`);
  }
  return name;
}

/** An intent is written by the caller wherever it stands. */
function directionOf(title: string, direction: Direction): Direction {
  return title === "Intent" ? "input" : direction;
}

function bareText(node: Node, direction: Direction, named: Map<string, string>): string {
  if (node.anyOf !== undefined) return node.anyOf.map((one) => typeText(one, direction, named)).join(" | ");
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.enum !== undefined) return enumText(node.enum);
  const { type } = node;
  if (type === undefined) return "unknown";
  const types = typeof type === "string" ? [type] : type;
  return types.map((one) => kindText(one, node, direction, named)).join(" | ");
}

function enumText(values: readonly unknown[]): string {
  const some = unionText(values.filter((value) => value !== null));
  return `${unions.get(some) ?? some}${values.includes(null) ? " | null" : ""}`;
}

function unionText(values: readonly unknown[]): string {
  return values.map((value) => JSON.stringify(value)).join(" | ");
}

function kindText(type: string, node: Node, direction: Direction, named: Map<string, string>): string {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return `readonly (${typeText(node.items ?? {}, direction, named)})[]`;
    case "object":
      return objectText(node, direction, named);
    default:
      throw new TypeError(`no TypeScript for the JSON type ${type}`);
  }
}

function objectText(
  { properties, required = [], additionalProperties: others }: Node,
  direction: Direction,
  named: Map<string, string>,
): string {
  if (properties === undefined)
    return `Readonly<Record<string, ${typeof others === "object" ? typeText(others, direction, named) : "unknown"}>>`;
  const fields = Object.entries(properties).map(([name, field]) => {
    const words = field.description === undefined ? "" : `/** ${field.description.replaceAll("*/", "*\\/")} */\n`;
    const value = typeText(field, direction, named);
    if (required.includes(name)) return `${words}readonly ${name}: ${value};`;
    return `${words}readonly ${name}?: ${value}${direction === "input" ? " | undefined" : ""};`;
  });
  return fields.length === 0 ? "Readonly<Record<string, never>>" : `{\n${fields.join("\n")}\n}`;
}
