import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ServerProcess, spawnServer } from "../../torture/server-process.ts";
import { type Body, type Client, clientOf } from "../server/harness.ts";

/** Old space, in MiB: what a tenant stores in these tests is more than that. */
const heapMebibytes = 128;
const body = "b".repeat(102_000);
const inputs = { text: "i".repeat(65_000) };

interface Running extends Client {
  readonly server: ServerProcess;
}

async function start(t: TestContext, folder: string): Promise<Running> {
  const port = await freePort();
  const server = spawnServer(port, folder, [`--max-old-space-size=${heapMebibytes}`]);
  t.after(() => server.kill());
  await server.untilReady();
  return { server, ...clientOf(`http://127.0.0.1:${port}`) };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-full-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface Created {
  readonly results: readonly {
    readonly status: number;
    readonly body: { readonly task_id?: string; readonly error?: string };
  }[];
}

async function createSix(client: Client, tenant: string): Promise<Created["results"]> {
  const task = { task_type: "build", principal_ai: "planner", task_body: body, inputs };
  const create = () => client.post<Created & Body>("/v1/tasks/batch", { tasks: Array(6).fill(task) }, { tenant });
  let answer = await create();
  // A slow disk leaves more in memory than the quota counts; the refusal says to try again.
  while (answer.body.error === "memory_exhausted") {
    await sleep(200);
    answer = await create();
  }
  assert.equal(answer.status, 200, answer.text);
  return answer.body.results;
}

interface WireOffer {
  readonly task: { readonly task_body?: string; readonly task_summary?: string };
}

const greedy = { tenant: "greedy" };

test("S4: a tenant that stores more than the heap holds is refused by its quota; others are served, also after kill -9", async (t) => {
  const folder = newFolder(t);
  const first = await start(t, folder);
  await first.post("/v1/tenants", { tenant_id: "greedy" });
  const quota = 1.5 * heapMebibytes * 2 ** 20;
  await first.call("PUT", "/v1/tenants/greedy/quotas", { payload_bytes_max: quota, digest_bytes_max: 2 ** 20 });
  let refused: Created["results"][number] | undefined;
  let last = "";
  for (let nth = 0; refused === undefined; nth++) {
    assert.ok(nth < 2 * heapMebibytes, "the quota refuses nothing");
    const results = await createSix(first, "greedy");
    refused = results.find(({ status }) => status !== 201);
    last = results.findLast(({ status }) => status === 201)?.body.task_id ?? last;
  }
  assert.deepEqual([refused.status, refused.body.error], [403, "quota_exceeded"], JSON.stringify(refused));
  for (let nth = 0; nth < 8; nth++) {
    await first.register(`a${nth}`, greedy);
    const digest = { checkpoint_id: "c", resume_point: "p", context: { text: "c".repeat(250_000) } };
    const saved = await first.call("PUT", `/v1/agents/a${nth}/digest`, digest, greedy);
    if (nth < 4) assert.equal(saved.status, 200, saved.text);
    else assert.deepEqual([saved.status, saved.body.error], [403, "quota_exceeded"]);
  }
  await first.register("other");
  await first.grant("other", "FILE:/x");
  await first.server.kill();

  const second = await start(t, folder);
  await second.grant("other", "FILE:/y");
  const shown = await second.get<{ readonly task_body: string }>(`/v1/tasks/${last}`, greedy);
  assert.equal(shown.body.task_body, body);
  const poll = { worker_id: "build.1" };
  const offered = await second.post<WireOffer>("/lease", poll, greedy);
  assert.deepEqual([offered.status, offered.body.task.task_body?.length], [200, body.length]);
  const again = (await createSix(second, "greedy"))[0];
  assert.deepEqual([again?.status, again?.body.error], [403, "quota_exceeded"], "what is stored counts again");
});

test("S4: where memory itself runs out, what would add to it is refused, and the process goes on, also after kill -9", async (t) => {
  const folder = newFolder(t);
  const first = await start(t, folder);
  await first.register("holder");
  const lease = await first.grant("holder", "FILE:/held");
  const task = { task_type: "build", principal_ai: "planner", task_summary: "s".repeat(4_000) };
  let refusal = "";
  for (let nth = 0; refusal === ""; nth++) {
    assert.ok(nth < 2_000, "nothing is refused");
    const tasks = Array.from({ length: 100 }, (_, index) => ({ ...task, parent_task_id: `T-${nth}-${index}` }));
    const { body: answer } = await first.post<Partial<Created> & Body>("/v1/tasks/batch", { tasks });
    refusal = answer.error ?? answer.results?.find(({ status }) => status !== 201)?.body.error ?? "";
  }
  assert.equal(refusal, "memory_exhausted");
  const beat = await first.post(`/v1/leases/${lease.id}/heartbeat`, {});
  assert.equal(beat.status, 200, beat.text);
  await first.server.kill();

  const second = await start(t, folder);
  const offered = await second.post<WireOffer>("/lease", { worker_id: "build.1" });
  assert.deepEqual([offered.status, offered.body.task.task_summary?.length], [200, 4_000]);
});
