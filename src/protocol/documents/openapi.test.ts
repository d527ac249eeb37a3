import assert from "node:assert/strict";
import { test } from "node:test";
import { operations } from "../operations.ts";
import { openApiDocument } from "./openapi.ts";

interface DescribedOperation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Record<string, { readonly example: unknown }>;
  };
  readonly responses: Record<string, unknown>;
  readonly security?: readonly unknown[];
}
interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Record<string, { readonly [method: string]: DescribedOperation; readonly post: DescribedOperation }>;
  readonly components: Record<string, Record<string, unknown>>;
}

const text = JSON.stringify(openApiDocument("1.2.3"));
const document = JSON.parse(text) as Document;
const described = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, one]) => ({ path, method, ...one })),
);

test("the document has every route of every operation, each with an id of its own", () => {
  assert.equal(document.openapi, "3.1.0");
  assert.equal(document.info.version, "1.2.3");
  const routes = operations.flatMap((operation) => [operation, ...operation.also]);
  assert.equal(described.length, routes.length);
  for (const { path, method } of routes) assert.ok(document.paths[path]?.[method.toLowerCase()], `${method} ${path}`);
  assert.equal(new Set(described.map(({ operationId }) => operationId)).size, described.length);
});

test("every reference points at something, and nothing was lost on the way to JSON", () => {
  const references = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];
  assert.ok(references.length > 50);
  for (const [, kind = "", name = ""] of references) assert.ok(document.components[kind]?.[name], `${kind}/${name}`);
  assert.ok(!text.includes("~kind") && !text.includes("undefined"));
});

test("every parameter of a path is described, and required", () => {
  for (const { path, parameters = [] } of described) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = parameters.filter((one) => one.in === "path");
    assert.deepEqual(
      declared.map(({ name }) => name),
      inPath,
    );
    assert.ok(declared.every(({ required }) => required));
  }
});

test("every body has an example, and every operation its success and its failures", () => {
  for (const { path, requestBody, responses, security } of described) {
    if (requestBody !== undefined) assert.ok(Object.values(requestBody.content)[0]?.example, path);
    const statuses = Object.keys(responses);
    assert.ok(
      statuses.some((status) => status.startsWith("2") || status === "101"),
      path,
    );
    assert.ok(statuses.includes("503"), path);
    // A sign-in needs no credential beside what it signs in with, and that may be wrong.
    if (path !== "/v1/session") assert.equal(security === undefined, statuses.includes("401"), path);
  }
});

test("acquire shows the whole table of verdicts", () => {
  const acquire = document.paths["/v1/acquire"]?.post;
  assert.ok(acquire !== undefined);
  for (const status of ["200", "202", "400", "401", "403", "404", "409", "422", "423"])
    assert.ok(acquire.responses[status], status);
  assert.match(JSON.stringify(acquire.responses["409"]), /Died.*wait_timeout|wait_timeout.*Died/s);
  assert.match(JSON.stringify(acquire.responses["409"]), /Retry-After/);
});

test("the document is small enough to be read by a program at every start", () => {
  assert.ok(text.length < 400_000, String(text.length));
});
