import assert from "node:assert/strict";
import { test } from "node:test";
import { errorCodes } from "../src/protocol/answers/errors.ts";
import { operations } from "../src/protocol/operations.ts";
import { readSources } from "./sources/imports.ts";

const pages = readSources(["docs/**/*.md", "README.md"]);
const routes = new Set(
  Object.values(operations).flatMap(({ method, path, also }) => [
    routeOf(method, path),
    ...also.map((other) => routeOf(other.method, other.path)),
  ]),
);

test("docs name only routes that exist", () => {
  assert.deepEqual(
    pages.flatMap(({ path, text }) => unknownRoutes(text).map((route) => `${path}: ${route}`)),
    [],
  );
});

test("docs name only error codes that exist beside a status", () => {
  assert.deepEqual(
    pages.flatMap(({ path, text }) => unknownCodes(text).map((code) => `${path}: ${code}`)),
    [],
  );
});

test("an unknown route or code is found", () => {
  assert.deepEqual(unknownRoutes("`GET /v1/leases/{id}`, `POST|GET /v1/keys`, `GET /v1/events?since=0`"), []);
  assert.deepEqual(unknownRoutes("`POST /v1/leases` and `PUT|GET /v1/juggle/{x}`"), [
    "POST /v1/leases",
    "PUT /v1/juggle/{}",
    "GET /v1/juggle/{}",
  ]);
  assert.deepEqual(unknownCodes("409 `dedupe_conflict`, 404 `lease_forgotten`"), ["lease_forgotten"]);
});

function unknownRoutes(text: string): readonly string[] {
  return routesIn(text).filter((route) => !routes.has(route));
}

/** `POST|GET /v1/keys` is two; parameters may have any name. Other paths are those of cells and metrics. */
function routesIn(text: string): readonly string[] {
  const named = text.matchAll(
    /\b((?:GET|POST|PUT|DELETE)(?:\|(?:GET|POST|PUT|DELETE))*) (\/(?:v1|lease)\b[\w/{}…-]*)/g,
  );
  return [...named].flatMap(([, methods = "", path = ""]) => methods.split("|").map((method) => routeOf(method, path)));
}

function routeOf(method: string, path: string): string {
  return `${method} ${path.replace(/\{[^}]*\}|…/g, "{}").replace(/\/$/, "")}`;
}

function unknownCodes(text: string): readonly string[] {
  const known: readonly string[] = errorCodes;
  const named = [...text.matchAll(/\b[45]\d\d `([a-z]+_[a-z_]+)`/g)].map(([, code = ""]) => code);
  return named.filter((code) => !known.includes(code));
}
