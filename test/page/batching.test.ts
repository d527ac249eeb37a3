import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "../server/harness.ts";

test("with batch_ms events arrive together, all of them and in order", async (t) => {
  const { address, register, post } = await serve(t);
  const abort = new AbortController();
  t.after(() => abort.abort());
  const { body } = await fetch(`${address.url}/v1/events?since=0&batch_ms=200`, { signal: abort.signal });
  assert.ok(body !== null);
  // Locked from the start: an answer that nobody reads is closed when it is collected as garbage.
  const chunks = body.pipeThrough(new TextDecoderStream());
  for (let n = 0; n < 50; n++) await register(`agent-${n}`);
  await post("/v1/agents", { agent_id: "last" });
  let [text, portions] = ["", 0];
  for await (const chunk of chunks) {
    text += chunk;
    portions++;
    if (text.includes('"last"') && text.endsWith("\n\n")) break;
  }
  const ids = [...text.matchAll(/^id: (\d+)\ndata: /gm)].map(([, id]) => Number(id));
  assert.deepEqual(
    ids,
    ids.map((_, at) => at + 1),
  );
  assert.equal(ids.length, 51, text.slice(0, 400));
  assert.ok(portions < ids.length, `${portions} portions for ${ids.length} events`);
  const refused = await fetch(`${address.url}/v1/events?batch_ms=1001`);
  assert.equal(refused.status, 400);
});
