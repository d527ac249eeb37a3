/** The key of a cell, and the programs that it runs for holders (G13). */
import assert from "node:assert/strict";
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Plane } from "./harness.ts";
import { startPlane } from "./harness.ts";

const isLinux = process.platform === "linux";

async function keyOf(plane: Plane, role: string, operator?: string): Promise<string> {
  const options = operator === undefined ? {} : { key: operator };
  const { body, text } = await plane.post<{ key?: string }>("/v1/keys", { role, tenant_id: "default" }, options);
  assert.match(body.key ?? "", /^lhk_/, text);
  return body.key ?? "";
}

/** All environments and arguments on this machine that its user may read, as a holder's program sees them. */
const search = `for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; tr '\\0' '\\n' < $p/cmdline; done 2>/dev/null`;

test("G13: a holder's program finds the cell's key in no environment and no argument, though it runs as the same user", {
  skip: !isLinux,
}, async (t) => {
  const plane = await startPlane(t);
  const { body } = await plane.post<{ key: string }>("/v1/keys", { role: "operator" });
  const operator = body.key;
  const key = await keyOf(plane, "cell", operator);
  const options = { allow: ["*"], grace_ms: 100 };
  const cell = await plane.cell("keyed", [{ resource: "PROC:/a", driver: "process", options }], {
    env: { LEASEHOLD_KEY: key, MARKER: "still here" },
  });
  const environment = readFileSync(`/proc/${cell.child.pid}/environ`, "latin1");
  assert.match(environment, /MARKER=still here/);
  assert(!environment.includes(key));
  await plane.register("ann", { key: operator });
  const asked = { agent_id: "ann", intents: [{ predicate: "MUTATES", resource: "PROC:/a" }], hold_ms: 20_000 };
  const granted = await plane.post<{ leases: { coordinate: string; token: string }[] }>("/v1/acquire", asked, {
    key: operator,
  });
  const [lease] = granted.body.leases;
  assert(lease !== undefined, granted.text);
  const response = await fetch(`${lease.coordinate}/run`, {
    method: "POST",
    headers: { authorization: `Bearer ${lease.token}` },
    body: JSON.stringify({ argv: [realpathSync("/bin/sh"), "-c", search] }),
  });
  const output = (await response.text())
    .trim()
    .split("\n")
    .map((line) => Buffer.from((JSON.parse(line) as { data?: string }).data ?? "", "base64").toString())
    .join("");
  assert.match(output, /MARKER=still here/, "the search reads the cell's environment");
  assert(!output.includes(key), "the key was found");
});

test("G13: a key is read from a file that is the owner's alone, and one given in an argument does not stay there", {
  skip: !isLinux,
}, async (t) => {
  const plane = await startPlane(t);
  const operator = (await plane.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const key = await keyOf(plane, "cell", operator);
  const file = join(plane.folder, "cell.key");
  writeFileSync(file, `${key}\n`, { mode: 0o644 });
  const resources = [{ resource: "FILE:/a", driver: "files", options: { folder: "." } }];
  const open = plane.begin("filed", resources, { env: { LEASEHOLD_KEY_FILE: file } });
  await open.exited;
  assert.match(open.output.stderr, /others may read the key in .*; make it the owner's alone: chmod 600/);
  writeFileSync(join(plane.folder, "own.key"), `${key}\n`, { mode: 0o600 });
  const filed = await plane.cell("filed", resources, { env: { LEASEHOLD_KEY_FILE: join(plane.folder, "own.key") } });
  await filed.kill("SIGTERM");
  const argued = await plane.cell("filed", resources, { args: ["--key", key] });
  assert(!readFileSync(`/proc/${argued.child.pid}/cmdline`, "latin1").includes(key));
  assert(!readFileSync(`/proc/${argued.child.pid}/environ`, "latin1").includes(key));
});
