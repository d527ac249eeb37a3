import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ArtifactFiles } from "./artifact-files.ts";
import { ArtifactUses, blockBytes } from "./artifact-use.ts";

const quotas = { artifactsMax: 1_000, artifactBytesMax: 10_000_000 };
const limits = { bytesMax: 1_000_000, totalBytesMax: 10_000_000 };

/** A disk that is full from the second write on, and has room again later. */
function fullDisk(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-artifact-files-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const disk = { room: 1 };
  const files = new ArtifactFiles(folder, limits, (file, chunk) => {
    if (disk.room-- <= 0) throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    return file.write(chunk);
  });
  const left = () => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile()).length;
  return { disk, files, left };
}

test("S3: a full disk is answered, leaves no file, and the connection carries the answer", async (t) => {
  const { disk, files, left } = fullDisk(t);
  const server = createServer(async (request, response) => {
    const stored = await files.put("default", request, null, quotas);
    response.shouldKeepAlive = false;
    response.end(typeof stored === "string" ? stored : "stored");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const put = async () => (await fetch(url, { method: "PUT", body: new Uint8Array(400_000) })).text();
  assert.equal(await put(), "disk_full");
  assert.equal(left(), 0);
  disk.room = 1_000;
  assert.equal(await put(), "stored");
  assert.equal(left(), 1);
});

test("any other fault of the disk is still a fault", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-artifact-files-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = new ArtifactFiles(folder, limits, () => Promise.reject(new Error("EIO")));
  const bytes = (async function* () {
    yield Buffer.from("x");
  })();
  await assert.rejects(files.put("default", bytes, null, quotas), /EIO/);
});

test("M8: a count of files keeps what is under way", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-artifact-files-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = new ArtifactFiles(folder, limits);
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const slow = async function* () {
    yield Buffer.from("slow");
    begun.resolve();
    await end.promise;
  };
  const put = files.put("default", slow(), null, quotas);
  await begun.promise;
  await files.sweep(0);
  assert.deepEqual(await files.use("default"), { files: 1, bytes: blockBytes });
  end.resolve();
  await put;
  await files.sweep(0);
  assert.deepEqual(await files.use("default"), { files: 1, bytes: blockBytes });
});

test("M8: a refused upload does not make a count stale, and a file that came or went does", () => {
  const uses = new ArtifactUses();
  uses.addComing("a", 1, blockBytes);
  uses.addComing("a", -1, -blockBytes);
  assert.equal(uses.changes, 0);
  uses.addComing("a", 1, blockBytes);
  uses.hasCome("a", blockBytes);
  assert.equal(uses.changes, 1);
  uses.set(new Map());
  assert.deepEqual([uses.of("a"), uses.bytes], [{ files: 0, bytes: 0 }, 0]);
  uses.remove("a", blockBytes);
  assert.equal(uses.changes, 2);
});
