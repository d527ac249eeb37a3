/** G7: what a configured probe says of the service behind a gateway decides whether a fence is lifted. */
import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { failsWith, makeCell, newLease, scratch, startHttp, type TestCell } from "./testing/test-cell.ts";

const resource = "THING:/a";
let answer: { status: number; body: string } = { status: 200, body: "" };
const service = await startHttp((_request, response) => response.writeHead(answer.status).end(answer.body));
const url = `http://${service.address}/clean`;
const gateways = [
  ["http", { target: `http://${service.address}` }],
  ["tcp", { target: service.address }],
  ["udp", { target: service.address }],
] as const;

test("G7: a probe by URL decides whether a gateway's service is clean", async () => {
  for (const [driver, options] of gateways) {
    const { core } = makeCell([{ resource, driver, options: { ...options, probe: url } }]);
    const saying = async (status: number, body: string) => {
      answer = { status, body };
      return await core.probe(resource);
    };
    assert.deepEqual(await saying(204, ""), { clean: true, detail: "the probe has seen it clean" });
    assert.deepEqual(await saying(200, '{"clean":true,"detail":"no tables"}'), { clean: true, detail: "no tables" });
    assert.deepEqual(await saying(200, '{"clean":false,"detail":"3 tables"}'), { clean: false, detail: "3 tables" });
    assert.deepEqual(await saying(200, '{"clean":false}'), { clean: false, detail: "the probe says no" });
    assert.deepEqual(await saying(503, ""), { clean: false, detail: "the probe answered 503" });
    assert.deepEqual(await saying(302, ""), { clean: false, detail: "the probe answered 302" });
    assert.deepEqual(await saying(200, "x".repeat(70_000)), { clean: false, detail: "the probe's answer is too long" });
  }
});

test("G7: a fence of a gateway stays until the command that probes its service has seen it clean", async () => {
  for (const [driver, options] of gateways) {
    const dirt = join(scratch, `dirt-${driver}`);
    const probe = ["/bin/sh", "-c", `test ! -e ${dirt} || { echo "$LEASEHOLD_RESOURCE is dirty"; exit 1; }`];
    const stateFile = join(scratch, `${driver}.state.json`);
    writeFileSync(stateFile, JSON.stringify({ leases: [], fences: { [resource]: "smoke" } }));
    const settings = { state_file: stateFile };
    const cell: TestCell = makeCell([{ resource, driver, options: { ...options, probe } }], { settings });
    writeFileSync(dirt, "");
    await failsWith("resource_fenced", cell.core.bind(newLease(resource)));
    const seen = await cell.core.reset(resource);
    assert.equal(seen.clean, false);
    assert.match(seen.detail, /THING:\/a is dirty/);
    assert.notEqual(cell.core.inventory()[0]?.fenced, null);
    rmSync(dirt);
    assert.equal((await cell.core.reset(resource)).clean, true);
    await cell.core.bind(newLease(resource));
    assert(!existsSync(dirt));
  }
});

test("a probe that is neither a URL nor a command is one line about that resource", async () => {
  const faults = [];
  for (const probe of ["ftp://x", 7, [], ""])
    faults.push(...(await makeCell([{ resource, driver: "tcp", options: { target: "h:1", probe } }]).core.start()));
  assert.equal(faults.length, 4);
  for (const fault of faults) assert.match(fault, /^resources\[0\]\.options\.probe is /);
});
