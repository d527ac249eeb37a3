import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigUnusable, readCellConfig } from "./config.ts";

const good = { resource: "GPU:/lab/a", driver: "http", options: { target: "http://127.0.0.1:9000" } };

function read(resources: unknown, more: object = {}): ReturnType<typeof readCellConfig> {
  return readCellConfig(JSON.stringify({ cell: "lab-1", resources, ...more }), "/etc/leasehold/cell.json");
}

test("a configuration names the cell, its resources, their drivers and labels", () => {
  const config = read([{ ...good, capacity: 4, hardware: ["a100"] }], { hardware: ["x86"], state_file: "state.json" });
  assert.deepEqual(config.faults, []);
  assert.equal(config.stateFile, "/etc/leasehold/state.json");
  const [resource] = config.resources;
  assert.deepEqual(resource?.hardware, ["x86", "a100"]);
  assert.equal(resource?.capacity, 4);
});

test("a faulty resource is reported in one clear line, and does not stop the others", () => {
  const cases: readonly [unknown, RegExp][] = [
    [7, /^resources\[1\] is not an object/],
    [
      { ...good, resource: "GPU:/b", driver: "warp" },
      /driver is "warp"; there is http, tcp, udp, process, files, memory, exec, webhook/,
    ],
    [{ ...good, resource: "GPU:/b", driver: "constructor" }, /driver is "constructor"/],
    [{ ...good, resource: "gpu" }, /resources\[1\]\.resource is "gpu"; give TYPE:\/path/],
    [{ ...good, resource: "GPU:/a/../b" }, /not in the one form/],
    [{ ...good, resource: "GPU:/a/*" }, /without patterns/],
    [{ ...good, resource: "GPU:/lab/a" }, /stands there twice/],
    [{ ...good, resource: "GPU:/b", options: {} }, /options\.target is missing/],
    [{ ...good, resource: "GPU:/b", options: { target: "ftp://x" } }, /give http:\/\/host:port/],
    [
      { ...good, resource: "GPU:/b", options: { target: "http://x", listen: "nowhere" } },
      /options\.listen is "nowhere"; give host:port/,
    ],
    [{ ...good, resource: "GPU:/b", options: { target: "http://x", listen: "x:70000" } }, /options\.listen is/],
    [{ ...good, resource: "GPU:/b", options: { target: "http://x", tarpit: 1 } }, /options\.tarpit is not known/],
    [{ ...good, resource: "GPU:/b", capacity: 0 }, /capacity is 0; give a whole number/],
    [{ resource: "PROC:/b", driver: "process", options: {} }, /command is missing, and so is allow/],
    [{ resource: "PROC:/b", driver: "process", options: { command: [] } }, /command is empty/],
    [{ resource: "FILE:/b", driver: "files", options: {} }, /folder or file: give one of the two/],
    [{ resource: "FILE:/b", driver: "files", options: { file: "x" } }, /length is missing/],
    [{ resource: "X:/b", driver: "exec", options: { bind: ["true"] } }, /teardown is missing/],
    [
      { resource: "X:/b", driver: "webhook", options: { url: "https://x", secret_file: "s", allow: ["10.0.0.0/99"] } },
      /allow has "10\.0\.0\.0\/99"/,
    ],
    [{ resource: "X:/b", driver: "tcp", options: { target: "x" } }, /target is "x"; give host:port/],
  ];
  for (const [resource, line] of cases) {
    const config = read([good, resource]);
    assert.deepEqual(
      config.resources.map(({ resource }) => resource),
      ["GPU:/lab/a"],
      JSON.stringify(resource),
    );
    assert.equal(config.faults.length, 1, config.faults.join("\n"));
    assert.match(config.faults[0] ?? "", line);
    assert.doesNotMatch(config.faults[0] ?? "", /\n/);
  }
});

test("a file that is not a cell's configuration is refused in one line", () => {
  for (const text of [
    "",
    "{",
    "[]",
    '{"cell":"a b","resources":[]}',
    '{"cell":"a"}',
    '{"cell":"a","resources":[],"x":1}',
  ]) {
    assert.throws(
      () => readCellConfig(text, "cell.json"),
      (error) => error instanceof ConfigUnusable && !error.message.includes("\n"),
      text,
    );
  }
});
