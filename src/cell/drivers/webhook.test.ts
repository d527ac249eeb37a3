import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { AddressGuard } from "../addresses.ts";
import { failsWith, makeCell, newLease, scratch, startHttp, type TestCell } from "../testing/test-cell.ts";

const resource = "SEAT:/designer";
const secret = "a secret of many letters";
writeFileSync(join(scratch, "secret"), `${secret}\n`);

interface Delivery {
  readonly event: string;
  readonly lease?: string;
  readonly fence?: number;
  readonly reason?: string;
}

interface Call {
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

async function startHook(
  answer: (event: string, response: ServerResponse) => void,
): Promise<{ address: string; calls: Call[] }> {
  const calls: Call[] = [];
  const { address } = await startHttp((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      calls.push({ headers: request.headers, body });
      answer((JSON.parse(body) as { event: string }).event, response);
    });
  });
  return { address, calls };
}

function makeHookCell(address: string, options: object = { allow_private: true }, settings: object = {}): TestCell {
  const hook = { url: `http://${address}/hook`, secret_file: "secret", ...options };
  return makeCell([{ resource, driver: "webhook", options: hook }], { settings: { ...settings } });
}

test("bind and teardown are posted to the user's service, signed, with the lease and never the token", async () => {
  const { address, calls } = await startHook((event, response) => {
    response.end(event === "bind" ? JSON.stringify({ coordinate: "seat://7" }) : "");
  });
  const { core } = makeHookCell(address);
  const lease = newLease(resource);
  const { coordinate, token } = await core.bind(lease);
  assert.equal(coordinate, "seat://7");
  await core.teardown(lease.id, "lease_released");
  const deliveries = calls.map(({ body }) => JSON.parse(body) as Delivery);
  assert.deepEqual(
    deliveries.map(({ event, reason }) => [event, reason]),
    [
      ["bind", undefined],
      ["teardown", "lease_released"],
    ],
  );
  assert.equal(deliveries[0]?.lease, lease.id);
  assert.equal(deliveries[0]?.fence, lease.fence);
  for (const { headers, body } of calls) {
    const at = String(headers["leasehold-timestamp"]);
    const expected = createHmac("sha256", secret).update(`${at}.${body}`).digest("hex");
    assert.equal(headers["leasehold-signature"], `v1=${expected}`);
    assert(!body.includes(token) && !JSON.stringify(headers).includes("lht1."));
  }
  assert.notEqual(calls[0]?.headers["leasehold-delivery"], calls[1]?.headers["leasehold-delivery"]);
});

test("private, loopback and link-local addresses are not called unless the configuration says so", async () => {
  const { address, calls } = await startHook((_event, response) => response.end("{}"));
  const port = address.split(":")[1];
  for (const host of [
    "127.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0x7f.1",
    "2130706433",
    "169.254.169.254",
    "10.0.0.1",
  ]) {
    const { core } = makeHookCell(`${host}:${port}`, {}, { bind_ms: 2_000, teardown_ms: 2_000 });
    const error = await failsWith("bind_failed", core.bind(newLease(resource)));
    assert.match(error.message, /private address|webhook failed/, host);
    assert.equal(core.inventory()[0]?.fenced, null, "what was never sent needs no fence");
  }
  assert.deepEqual(calls, []);
  await makeHookCell(address, { allow: ["127.0.0.0/8"] }).core.bind(newLease(resource));
  assert.equal(calls.length, 1);
});

test("every range that is not public is known, in each way to write it", () => {
  const guard = new AddressGuard(false, []);
  const inside = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.9.9.9",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "fc00::1",
    "fd12::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "2001:db8::1",
    "not an address",
  ];
  for (const address of inside) assert.equal(guard.permits(address), false, address);
  for (const address of ["1.1.1.1", "8.8.8.8", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"]) {
    assert.equal(guard.permits(address), true, address);
  }
  const open = new AddressGuard(false, ["10.1.0.0/16", "fd00::/8"]);
  assert.deepEqual(
    ["10.1.9.9", "10.2.0.1", "fd00::1"].map((address) => open.permits(address)),
    [true, false, true],
  );
  assert.equal(new AddressGuard(true, []).permits("127.0.0.1"), true);
});

test("a name is judged by what it means at the moment of the connection", async () => {
  const guard = new AddressGuard(false, []);
  const found = await new Promise<Error | null>((resolve) => guard.lookup("localhost", {}, (error) => resolve(error)));
  assert.match(String(found), /private address/);
});

test("G7: refusals, redirects, nonsense and silence are failures of that binding; a failed teardown fences", async () => {
  const answers: Record<string, (response: ServerResponse) => void> = {
    refused: (response) => response.writeHead(500).end(),
    redirected: (response) => response.writeHead(307, { location: "http://127.0.0.1:1/" }).end(),
    nonsense: (response) => response.end("<html>"),
    endless: (response) => response.end("x".repeat(100_000)),
    silent: () => {},
  };
  for (const [name, answer] of Object.entries(answers)) {
    const { address } = await startHook((event, response) => {
      if (event === "bind") answer(response);
      else response.end();
    });
    const { core } = makeHookCell(address, { allow_private: true }, { bind_ms: 100 });
    await failsWith("bind_failed", core.bind(newLease(resource)));
    assert.equal(core.inventory()[0]?.fenced, null, name);
  }
  let isWell = false;
  const { address } = await startHook((event, response) => {
    if (event === "bind") response.end("{}");
    else if (event === "probe") response.end(JSON.stringify({ clean: isWell, detail: "looked" }));
    else if (event === "reset") response.end();
    else response.writeHead(isWell ? 200 : 503).end();
  });
  const { core, events } = makeHookCell(address);
  const lease = newLease(resource);
  await core.bind(lease);
  await failsWith("teardown_failed", core.teardown(lease.id));
  await failsWith("resource_fenced", core.bind(newLease(resource)));
  assert.equal(events[0]?.type, "fenced");
  assert.deepEqual(await core.reset(resource), { clean: false, detail: "looked" });
  await failsWith("resource_fenced", core.bind(newLease(resource)));
  isWell = true;
  assert.deepEqual(await core.reset(resource), { clean: true, detail: "looked" });
  await core.bind(newLease(resource));
});
