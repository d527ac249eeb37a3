import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import * as receiptShapes from "../../src/protocol/receipts/receipt-shapes.ts";
import * as taskShapes from "../../src/protocol/tasks/task-shapes.ts";
import { getTask } from "../../src/protocol/tasks/tasks.ts";
import type { OperationAnswers, Receipt, Task } from "../../src/sdk/wire.ts";
import { assertFits, type Folder, makeFolder, type Server, startServer, until } from "./harness.ts";

type TaskView = OperationAnswers["get_task"];

let server: Server;
let folder: Folder;

before(async () => {
  folder = makeFolder();
  server = await startServer(["--data", join(folder.path, "data")]);
});
after(async () => {
  await server.stop();
  folder.remove();
});

const add = async (...args: readonly string[]) =>
  (await server.json<{ task_id: string }>(["tasks", "add", ...args])).task_id;
const show = (id: string) => server.json<TaskView>(["tasks", "show", id]);
const work = (type: string, script: string, ...flags: readonly string[]) => [
  "work",
  "--type",
  type,
  "--count",
  "1",
  ...flags,
  "--",
  "sh",
  "-c",
  script,
];

/** One after the other: a polling worker may be offered any type, and would give other tests' tasks back. */
describe("tasks", () => {
  test("a task goes from add to a result: the command gets it on standard input, and its output is the result", async () => {
    const id = await add(
      "square",
      "--inputs",
      '{"n": 7}',
      "--summary",
      "seven",
      "--principal",
      "boss",
      "--mutates",
      "X:/square",
    );
    const explained = await server.json(["tasks", "explain", id]);
    assertFits(taskShapes.explained, explained);
    const ran = await server.line(
      work("square", 'cat; echo "$LEASEHOLD_TASK_ID $LEASEHOLD_ATTEMPT $LEASEHOLD_LEASE_IDS" >&2'),
    );
    assert.equal(ran.code, 0, ran.stderr);
    assert.match(ran.stderr, new RegExp(`^${id} 1 lse_[\\w-]+\\nleasehold: ${id} succeeded\\n$`));
    const task = await show(id);
    assertFits(getTask.replies[0]?.schema ?? taskShapes.task, task);
    assert.equal(task.status, "succeeded");
    assert.deepEqual((JSON.parse(task.result?.outcome_text ?? "{}") as { inputs: unknown }).inputs, { n: 7 });
    const { receipts } = await server.json<{ receipts: Receipt[] }>(["receipts", "--task", id]);
    assert.deepEqual(
      receipts.map(({ phase }) => phase),
      ["accepted", "complete"],
    );
    for (const receipt of receipts) assertFits(receiptShapes.receipt, receipt);
    const chain = await server.json(["receipts", receipts[0]?.receipt_id ?? ""]);
    assertFits(receiptShapes.chain, chain);
    const { tasks } = await server.json<{ tasks: Task[] }>(["tasks", "ls", "--type", "square"]);
    assert.deepEqual(
      tasks.map(({ task_id: one }) => one),
      [id],
    );
    assertFits(taskShapes.task, tasks[0]);
  });

  test("the command is in the trace of its task, and never in that of the worker's process", async () => {
    const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const asked = { task_type: "traced", principal_ai: "boss" };
    const created: string[] = [];
    for (const traceparent of [trace, ""]) {
      const headers = { "content-type": "application/json", traceparent };
      const init = { method: "POST", headers, body: JSON.stringify(asked) };
      const response = await fetch(`${server.url}/v1/tasks`, init);
      created.push(((await response.json()) as { task_id: string }).task_id);
      const ran = await server.line(["work", "--type", "traced", "--count", "1", "--", "sh", "-c", "env"], {
        env: { TRACEPARENT: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00" },
      });
      assert.equal(ran.code, 0, ran.stderr);
    }
    const printed = await Promise.all(created.map(async (id) => (await show(id)).result?.outcome_text ?? ""));
    assert.deepEqual(
      printed.map((text) => /^TRACEPARENT=(.*)$/m.exec(text)?.[1]),
      [trace, undefined],
    );
  });

  test("a command that fails is a failure with its last output; --no-retry makes it final", async () => {
    const id = await add("fails", "--attempts", "1");
    const { stderr } = await server.line(work("fails", "echo why >&2; exit 3", "--no-retry"));
    assert.match(stderr, /failed/);
    const task = await show(id);
    assert.equal(task.status, "failed");
    assert.match(task.result?.outcome_text ?? "", /exit code 3\nwhy/);
  });

  test("a large or binary result is an artifact that the receipt points to", async () => {
    const id = await add("large");
    await server.line(work("large", "head -c 200000 /dev/zero"));
    const { result } = await show(id);
    assert.deepEqual([result?.outcome_kind, result?.artifact_size_bytes], ["artifact_pointer", 200_000]);
  });

  test("a cancelled task ends its command", async () => {
    const id = await add("long", "--lease", "5s");
    const running = server.begin(
      work("long", "trap 'echo stopping >&2; exit 1' TERM; echo up >&2; while :; do sleep 0.05; done"),
    );
    await until(() => (running.output.stderr.includes("up") ? true : null), "it runs");
    assertFits(taskShapes.task, await server.json(["tasks", "cancel", id, "--reason", "no longer"]));
    const { code, stderr } = await running.ended;
    assert.equal(code, 0);
    assert.match(stderr, /stopping/);
    assert.equal((await show(id)).status, "canceled");
  });

  test("L9: when a command that acts as an agent dies, the agent's restart is announced", async () => {
    await server.json(["acquire", "--agent", "tasker", "X:/tasker", "--ttl", "5m"]);
    const id = await add("crashing", "--principal", "boss");
    const script = 'test "$LEASEHOLD_AGENT_ID" = tasker && exit 9';
    await server.line(work("crashing", script, "--agent", "tasker", "--no-retry"));
    assert.equal((await show(id)).status, "failed");
    const { state } = await server.json<{ state: string }>(["agents", "tasker"]);
    assert.equal(state, "DIE_RESTART");
  });

  test("T3: --accept-if declines an offer before it is accepted, and takes a later one", async () => {
    const id = await add("picky", "--principal", "boss");
    const file = join(folder.path, "ready");
    const running = server.begin(work("picky", "echo done", "--accept-if", `grep -q ${id} && test -e ${file}`));
    await until(() => (running.output.stderr.includes("declined") ? true : null), "it declines");
    assert.deepEqual((await show(id)).receipts, []);
    writeFileSync(file, "");
    assert.equal((await running.ended).code, 0);
    assert.equal((await show(id)).status, "succeeded");
  });

  test("SIGTERM drains: the running command completes, and the worker exits with 0", async () => {
    const id = await add("drain");
    const running = server.begin(["work", "-t", "drain", "--", "sh", "-c", "echo up >&2; sleep 0.5; echo done"]);
    await until(() => (running.output.stderr.includes("up") ? true : null), "it runs");
    running.child.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
    assert.equal((await show(id)).result?.outcome_text, "done");
  });

  test("inbox and obligations list open work by custodian", async () => {
    await add("owed", "--principal", "owner.one");
    const running = server.begin(["work", "-t", "owed", "--", "sh", "-c", "echo up >&2; sleep 30"]);
    await until(() => (running.output.stderr.includes("up") ? true : null), "it runs");
    const { obligations } = await server.json<{ obligations: unknown[] }>(["inbox", "--all", "--state", "OPEN"]);
    assert.ok(obligations.length > 0);
    assertFits(receiptShapes.obligation, obligations[0]);
    assert.equal((await server.line(["inbox", "owner.one", "--json"])).code, 0);
    running.child.kill("SIGKILL");
  });

  test("wrong tasks and ids are reported in one line", async () => {
    for (const args of [
      ["tasks", "show", "T-never"],
      ["tasks", "cancel", "T-never"],
      ["tasks", "redrive", "T-never"],
      ["tasks", "explain", "T-never"],
      ["receipts", "rcp_never"],
    ]) {
      const { code, stdout, stderr } = await server.line(args);
      assert.deepEqual([code, stdout], [1, ""], args.join(" "));
      assert.match(stderr, /^leasehold: [^\n]+\n$/);
    }
  });
});

test("R6: the ledger verifies and is exported, and one changed character is found with exit code 7", async () => {
  const id = await add("ledger");
  await server.line(work("ledger", "echo proof"));
  assert.equal((await show(id)).status, "succeeded");
  const data = join(folder.path, "data");
  const whole = await server.json<{ whole: boolean }>(["ledger", "verify", "--data", data]);
  assert.equal(whole.whole, true);
  const head = await server.json(["ledger", "head"]);
  const anchor = join(folder.path, "head.json");
  writeFileSync(anchor, JSON.stringify(head));
  assert.equal((await server.line(["ledger", "verify", "--data", data, "--anchor", anchor])).code, 0);
  const file = join(folder.path, "ledger.jsonl");
  assert.deepEqual(await server.json(["ledger", "export", "--data", data, "--out", file]), { file });
  assert.equal((await server.line(["ledger", "verify", "--file", file])).code, 0);
  writeFileSync(file, readFileSync(file, "utf8").replace("proof", "Proof"));
  const broken = await server.line(["ledger", "verify", "--file", file]);
  assert.equal(broken.code, 7, broken.stderr);
  assert.match(broken.stdout, /receipt \d+/);
});
