import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { serve } from "../server/harness.ts";
import { generateClient, type OpenApi } from "./generate-client.ts";

const compiler = "node_modules/typescript/bin/tsc";
const options = "--noEmit --strict --noUncheckedIndexedAccess --exactOptionalPropertyTypes --skipLibCheck false";
const target = "--target esnext --module nodenext --allowImportingTsExtensions --erasableSyntaxOnly --lib esnext,dom";

interface User {
  receiptIds(url: string, taskId: string): Promise<readonly string[]>;
  create(url: string): Promise<string>;
  resultOf(url: string, taskId: string): Promise<string | null>;
}

test("a strict TypeScript client that is generated from /openapi.json compiles, and works", async (t) => {
  const { get, address } = await serve(t);
  const { body } = await get<OpenApi>("/openapi.json");
  const folder = await mkdtemp(join(tmpdir(), "leasehold-client-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await writeFile(join(folder, "client.ts"), generateClient(body));
  await copyFile("test/openapi/user/program.ts", join(folder, "program.ts"));
  const flags = [...`${options} ${target}`.split(" "), "--types", "", join(folder, "program.ts")];
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, "--ignoreConfig", ...flags]).catch(
    (failed: { readonly stdout: string }) => failed,
  );
  assert.equal(stdout, "");
  const user = (await import(join(folder, "program.ts"))) as User;
  const taskId = await user.create(address.url);
  assert.deepEqual(await user.receiptIds(address.url, taskId), []);
  assert.equal(await user.resultOf(address.url, taskId), null);
});

test("no component of the OpenAPI document is null: where a value may be null, its place says so", async (t) => {
  const { body } = await (await serve(t)).get<OpenApi>("/openapi.json");
  const nullable = Object.entries(body.components.schemas).filter(([, { type }]) => [type].flat().includes("null"));
  assert.deepEqual(
    nullable.map(([name]) => name),
    [],
  );
});
