import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { serve } from "./harness.ts";
import { startLab } from "./lab.ts";
import { service, startCell } from "./real-cell.ts";

const sdk = new URL("../../src/sdk/index.ts", import.meta.url).href;

test("every example in docs/sdk.md runs and exits", async (t) => {
  const server = await serve(t);
  const behind = await service(t);
  await startCell(t, server.address.url, behind.url, ["GPU:/lab/a", "GPU:/lab/b"]);
  await startLab(t, server.address.url);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-docs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const text = readFileSync(new URL("../../docs/sdk.md", import.meta.url), "utf8");
  const examples = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = ""]) => code);
  assert.ok(examples.length >= 7);
  const outputs = await Promise.all(
    examples.map(async (code, index) => {
      const path = join(folder, `example-${index}.ts`);
      const here = code
        .replace('"leasehold/sdk"', JSON.stringify(sdk))
        .replace("createClient()", `createClient({ url: "${server.address.url}" })`);
      writeFileSync(path, here);
      const child = spawn(process.execPath, [path], { stdio: ["ignore", "pipe", "pipe"], timeout: 90_000 });
      let said = "";
      child.stdout.on("data", (data) => {
        said += String(data);
      });
      child.stderr.on("data", (data) => {
        said += String(data);
      });
      // Not "exit": some output may still be in flight then.
      const [exit] = (await once(child, "close")) as [number | null];
      assert.equal(exit, 0, `example ${index + 1}:\n${code}\n${said}`);
      return said;
    }),
  );
  assert.match(outputs[0] ?? "", /^written under fence \d+$/m);
  assert.ok(outputs.some((said) => said.includes("revoked")));
  assert.ok(outputs.some((said) => said.includes("agent_unknown 404 false")));
  assert.ok(outputs.some((said) => said.includes("200 under fence")));
  assert.ok(outputs.some((said) => said.includes("only read")));
  assert.ok(outputs.some((said) => said.includes("title: May")));
  assert.ok(outputs.some((said) => said.includes("7 bytes of the region")));
  assert.ok(outputs.some((said) => said.includes("echo: select 1")));
  assert.ok(outputs.some((said) => said.includes("echo: logins:1|c")));
});
