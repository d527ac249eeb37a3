import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, renameSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { askHelper, socketPath } from "./client.ts";

const said = { code: 0, stdout: "from the socket", stderr: "" };

/** Something listens where the helper would. */
async function plant(t: TestContext) {
  const environment = { LEASEHOLD_STATE: temporaryFolder("lh-"), LEASEHOLD_KEY: "lhk_secret" };
  const path = socketPath(environment);
  assert.ok(path !== null);
  const folder = dirname(path);
  mkdirSync(folder, { mode: 0o700 });
  let calls = 0;
  const server = createServer((socket) => {
    calls++;
    socket.once("data", () => socket.end(JSON.stringify(said)));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.after(() => server.close());
  const ask = () => askHelper({ args: ["claude"], input: "", cwd: "/", environment, pid: process.pid });
  return { folder, ask, calls: () => calls };
}

test("a hook hands its call, with the key, only to a socket in a folder that no other user can write in", async (t) => {
  const { folder, ask, calls } = await plant(t);
  assert.deepEqual(await ask(), said, "its own");
  for (const mode of [0o777, 0o770, 0o702]) {
    chmodSync(folder, mode);
    assert.equal(await ask(), null, mode.toString(8));
  }
  assert.equal(calls(), 1);
});

test("a link in the place of the helper's folder is not followed", async (t) => {
  const { folder, ask, calls } = await plant(t);
  const elsewhere = join(dirname(folder), "elsewhere");
  renameSync(folder, elsewhere);
  symlinkSync(elsewhere, folder);
  assert.equal(await ask(), null);
  assert.equal(calls(), 0);
});

test("the folder of another user is not trusted", {
  skip: process.getuid?.() !== 0 && "only root can give files away",
}, async (t) => {
  const { folder, ask, calls } = await plant(t);
  chownSync(folder, 65_534, 65_534);
  assert.equal(await ask(), null);
  assert.equal(calls(), 0);
});
