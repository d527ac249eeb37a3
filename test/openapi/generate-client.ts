/** A small generator of TypeScript clients from an OpenAPI document, as strict as those that users have. */

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly schema: Schema;
}

interface OperationObject {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content & { readonly required: boolean };
  readonly responses: Readonly<Record<string, Content & { readonly $ref?: string }>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Content>>;
  };
}

export function generateClient({ paths, components }: OpenApi): string {
  const types = Object.entries(components.schemas).map(([name, schema]) => `export type ${name} = ${typeOf(schema)};`);
  const methods = Object.entries(paths).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([method, described]) => methodOf(method, path, described, components.responses)),
  );
  return `${types.join("\n")}

export class Client {
  private readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

${methods.join("\n\n")}

  private async send(method: string, path: string, query: object, body: unknown): Promise<unknown> {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
    const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
    const headers = { "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers };
    const response = await fetch(\`\${this.url}\${path}?\${search}\`, { method, ...sent });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return { status: response.status, body: isJson ? JSON.parse(text) : text };
  }
}
`;
}

function methodOf(
  method: string,
  path: string,
  { operationId, parameters = [], requestBody, responses }: OperationObject,
  common: Readonly<Record<string, Content>>,
): string {
  const own = parameters.filter(({ $ref }) => $ref === undefined);
  const fields = own.map(({ name, required, schema }) => `${name}${required ? "" : "?"}: ${typeOf(schema)};`);
  const query = own.filter((parameter) => parameter.in === "query").map(({ name }) => `${name}: input.${name}`);
  const body = requestBody?.content?.["application/json"]?.schema;
  const input = body === undefined ? "" : `, body: ${typeOf(body)}`;
  const answers = Object.entries(responses).map(([status, { $ref, content }]) => {
    const known = $ref === undefined ? content : common[last($ref)]?.content;
    const [shape] = Object.values(known ?? {});
    return `{ readonly status: ${status}; readonly body: ${shape === undefined ? "unknown" : typeOf(shape.schema)} }`;
  });
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `\${encodeURIComponent(input.${name})}`);
  return `  async ${operationId}(input: { ${fields.join(" ")} }${input}): Promise<${answers.join(" | ")}> {
    const answer = await this.send(
      "${method.toUpperCase()}", \`${target}\`, { ${query.join(", ")} }, ${body === undefined ? "undefined" : "body"});
    return answer as Awaited<ReturnType<Client["${operationId}"]>>;
  }`;
}

function typeOf(schema: Schema): string {
  const { $ref, type, enum: values, anyOf, items } = schema;
  if ($ref !== undefined) return last($ref);
  if (anyOf !== undefined) return `(${anyOf.map(typeOf).join(" | ")})`;
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (Array.isArray(type)) return `(${type.map((one: string) => typeOf({ ...schema, type: one })).join(" | ")})`;
  switch (type) {
    case "object":
      return objectOf(schema);
    case "array":
      return `readonly ${items === undefined ? "unknown" : `(${typeOf(items)})`}[]`;
    case "integer":
      return "number";
    case undefined:
      return "unknown";
    default:
      return String(type);
  }
}

function objectOf({ properties = {}, required = [], additionalProperties: extra }: Schema): string {
  const fields = Object.entries(properties).map(
    ([name, schema]) => `readonly ${JSON.stringify(name)}${required.includes(name) ? "" : "?"}: ${typeOf(schema)}`,
  );
  if (typeof extra === "object") return `Readonly<Record<string, ${typeOf(extra)}>>`;
  const named = `{ ${fields.join("; ")} }`;
  return extra === true ? `(${named} & Readonly<Record<string, unknown>>)` : named;
}

function last(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}
