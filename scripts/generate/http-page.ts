/** docs/http.md: every operation for people to read, from the document that /openapi.json serves. */
import { readFileSync } from "node:fs";
import { openApiDocument } from "../../src/protocol/documents/openapi.ts";

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly $ref?: string;
  readonly items?: Schema;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
}

interface Parameter {
  readonly $ref?: string;
  readonly name?: string;
  readonly in?: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

interface OperationObject {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>;
  };
  readonly responses: Readonly<Record<string, { readonly $ref?: string; readonly description?: string }>>;
}

interface Document {
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export function httpPageText(): string {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly version: string };
  const document = openApiDocument(version) as unknown as Document;
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method: method.toUpperCase(), described })),
  );
  const groups = document.tags.map(({ name, description }) => {
    const own = all.filter(({ described }) => described.tags.includes(name));
    const list = own.map(({ path, method, described }) => `| \`${method} ${path}\` | ${cell(described.summary)} |`);
    const parts = own.map(({ path, method, described }) => operationText(document, path, method, described));
    return [`## ${name}`, "", description, "", "| request | what it does |", "| --- | --- |", ...list, "", ...parts];
  });
  return `${[
    "# HTTP reference",
    "",
    "Generated from the OpenAPI document by `npm run generate`; a running server has the same at `/openapi.json`, with the",
    "shapes of all answers. [api.md](api.md) says what the operations mean, [errors.md](errors.md) what to do about an error.",
    "`test/http-doc.test.ts` sends every example of this page to a server.",
    "",
    ...groups.flat(),
  ]
    .join("\n")
    .trimEnd()}\n`;
}

function operationText(document: Document, path: string, method: string, described: OperationObject): string {
  const { summary, description = "", parameters = [], requestBody, responses } = described;
  const [[type, body] = ["", undefined]] = Object.entries(requestBody?.content ?? {});
  const schema = resolved(document, body?.schema);
  const fields = [
    ...parameters.flatMap((one) =>
      one.name === undefined
        ? []
        : [row(one.name, one.in ?? "", one.required === true, one.schema ?? {}, one.description)],
    ),
    ...Object.entries(schema?.properties ?? {}).map(([name, field]) =>
      row(name, "body", schema?.required?.includes(name) === true, field, field.description),
    ),
  ];
  const example =
    type === "application/json" && body?.example !== undefined ? JSON.stringify(body.example, null, 2) : null;
  return [
    `### ${method} ${path}`,
    "",
    [`${summary}.`, description].filter(Boolean).join(" "),
    "",
    ...(fields.length === 0 ? [] : ["| field | in | type | meaning |", "| --- | --- | --- | --- |", ...fields, ""]),
    ...(example === null ? [] : ["```json", example, "```", ""]),
    `Answers: ${Object.entries(responses).map(answerWords).join("; ")}.`,
    "",
  ].join("\n");
}

/** What succeeded in words, what was refused by its codes. */
function answerWords([status, { description = "" }]: readonly [string, { readonly description?: string }]): string {
  if (status < "400") return `${status} ${description.split("\n")[0]?.replace(/\.$/, "") ?? ""}`.trim();
  const codes = [...description.matchAll(/^`(\w+)`:/gm)].map(([, code]) => `\`${code}\``);
  return codes.length === 0 ? status : `${status} ${codes.join(", ")}`;
}

function row(name: string, place: string, isRequired: boolean, schema: Schema, words = ""): string {
  return `| \`${name}\`${isRequired ? " (required)" : ""} | ${place} | ${cell(typeWords(schema))} | ${cell(words)} |`;
}

function typeWords({ type, enum: values, $ref, items, anyOf }: Schema): string {
  if (values !== undefined)
    return values
      .filter((one) => one !== null)
      .map((one) => `\`${one}\``)
      .join(", ");
  if ($ref !== undefined) return $ref.split("/").at(-1) ?? "";
  if (anyOf !== undefined) return anyOf.map(typeWords).join(" or ");
  const [first = "any"] = [type ?? []].flat();
  return first === "array" && items !== undefined ? `list of ${typeWords(items)}` : first;
}

function resolved({ components }: Document, schema: Schema | undefined): Schema | undefined {
  return schema?.$ref === undefined ? schema : components.schemas[schema.$ref.split("/").at(-1) ?? ""];
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
