/**
 * A worker of one task, as a process that can be stopped and killed: polls, accepts, works for a while and completes,
 * and prints each step as a line of JSON.
 *
 *   node zombie.child.ts URL WORKER_ID WORK_MS
 */
const [url = "", workerId = "", workMs = "0"] = process.argv.slice(2);

async function post(path: string, body: object): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}

function say(step: string, told: object): void {
  process.stdout.write(`${JSON.stringify({ step, ...told })}\n`);
}

const poll = await post("/lease", { worker_id: workerId, hold_ms: 20_000 });
const { lease_id } = poll.body as { readonly lease_id: string };
const accepted = await post("/v1/receipts", { phase: "accepted", lease_id });
say("accepted", { lease_id, status: accepted.status });
await new Promise((resolve) => setTimeout(resolve, Number(workMs)));
const complete = { phase: "complete", status: "success", lease_id, outcome_text: `by ${workerId}` };
const done = await post("/v1/receipts", complete);
say("completed", done);
// A zombie repeats its receipt, also with a key.
say("completed again", await post("/v1/receipts", { ...complete, dedupe_key: `${workerId}-${lease_id}` }));
process.exit(0);
