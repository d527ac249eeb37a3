import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { request as ask, type ClientRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { CellLease } from "../binding.ts";
import { eventually, makeCell, narrowed, newLease, scratch, type TestCell } from "../testing/test-cell.ts";
import { readableUpTo } from "./file-store.ts";

const resource = "FILE:/shared";

interface Opened {
  readonly cell: TestCell;
  readonly lease: CellLease;
  readonly token: string;
  readonly coordinate: string;
  readonly folder: string;
  readonly call: (method: string, path: string, body?: string, headers?: Record<string, string>) => Promise<Response>;
}

async function openFolder(options: object = {}): Promise<Opened> {
  const outside = mkdtempSync(join(scratch, "files-"));
  const folder = join(outside, "leased");
  mkdirSync(join(folder, "sub"), { recursive: true });
  writeFileSync(join(outside, "secret"), "secret");
  writeFileSync(join(folder, "a.txt"), "0123456789");
  symlinkSync("../secret", join(folder, "link"));
  symlinkSync("..", join(folder, "up"));
  symlinkSync("a.txt", join(folder, "inner"));
  return { ...(await openWith({ folder, ...options })), folder };
}

async function openWith(options: object): Promise<Omit<Opened, "folder">> {
  const cell = makeCell([{ resource, driver: "files", options }]);
  const lease = newLease(resource);
  const { coordinate, token } = await cell.core.bind(lease);
  const call: Opened["call"] = (method, path, body, headers = {}) =>
    fetch(`${coordinate}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body !== undefined && { body }),
    });
  return { cell, lease, token, coordinate, call };
}

async function codeOf(response: Promise<Response>): Promise<string> {
  const { error } = (await (await response).json()) as { error: string };
  return error;
}

test("G5: files in the leased folder are read, in parts too, written, listed and deleted", async () => {
  const { call, folder } = await openFolder();
  assert.equal(await (await call("GET", "/a.txt")).text(), "0123456789");
  const part = await call("GET", "/a.txt", undefined, { range: "bytes=2-4" });
  assert.deepEqual([part.status, part.headers.get("content-range"), await part.text()], [206, "bytes 2-4/10", "234"]);
  assert.equal(await (await call("GET", "/a.txt", undefined, { range: "bytes=-3" })).text(), "789");
  assert.equal(await codeOf(call("GET", "/a.txt", undefined, { range: "bytes=20-" })), "range_not_satisfiable");
  assert.equal((await call("PUT", "/sub/new.txt", "new")).status, 201);
  assert.equal(readFileSync(join(folder, "sub/new.txt"), "utf8"), "new");
  assert.equal((await call("PUT", "/sub/new.txt?offset=1", "xyz")).status, 204);
  assert.equal(readFileSync(join(folder, "sub/new.txt"), "utf8"), "nxyz");
  assert.equal((await call("PUT", "/deeper?type=folder")).status, 201);
  const listed = (await (await call("GET", "/")).json()) as { entries: { name: string; type: string }[] };
  const names = listed.entries.map(({ name, type }) => `${name}:${type}`).sort();
  assert.deepEqual(names, ["a.txt:file", "deeper:folder", "inner:other", "link:other", "sub:folder", "up:other"]);
  assert.equal((await call("DELETE", "/sub/new.txt")).status, 204);
  assert.equal(await codeOf(call("GET", "/sub/new.txt")), "not_found");
  assert.equal((await call("HEAD", "/a.txt")).headers.get("content-length"), "10");
});

test("no path leads out: not by dots, encoded ones, absolute names, or links within or above", async () => {
  const { call, coordinate, token, folder } = await openFolder();
  const raw = async (path: string): Promise<string> => {
    const { port } = new URL(coordinate);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    const chunks: Buffer[] = [];
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  };
  const tricks = [
    "/../secret",
    "/sub/../../secret",
    "/%2e%2e/secret",
    "/..%2fsecret",
    "/sub/..%5c..%5csecret",
    "//etc/passwd",
    "/./a.txt",
    "/%2e/a.txt",
    "/sub//..",
    "/a.txt%00.png",
    "/a.txt%0a",
    "/%252e%252e/secret",
    "/%c0%ae%c0%ae/secret",
    "/%ff",
    "http://x/../secret",
    "*",
    "/link",
    "/up/secret",
    "/up/leased/a.txt",
    "/inner",
    "/sub/../link",
  ];
  for (const path of tricks) {
    const answer = await raw(path);
    assert.match(answer, /^HTTP\/1\.1 4\d\d /, `${path}: ${answer}`);
    assert(!answer.includes("secret\r\n") && !answer.endsWith("secret"), path);
  }
  for (const path of ["/link", "/up/new", "/inner?offset=0"]) {
    const response = await call("PUT", path, "overwritten");
    if (path !== "/link") assert.equal(response.status, 403, path);
  }
  // A whole file takes the place of the link itself; what the link led to is as it was.
  assert.equal(readFileSync(join(folder, "../secret"), "utf8"), "secret");
  assert.equal(readFileSync(join(folder, "a.txt"), "utf8"), "0123456789");
  assert(!existsSync(join(folder, "../new")));
});

test("pipes and folders are refused at once, because they are not files", async () => {
  const { call, folder } = await openFolder();
  execFileSync("mkfifo", [join(folder, "pipe")]);
  assert.equal(await codeOf(call("GET", "/pipe")), "conflict");
  assert.equal(await codeOf(call("PUT", "/sub", "x")), "conflict");
  assert.equal(await codeOf(call("PUT", "/", "x")), "conflict");
  assert.equal(await codeOf(call("PUT", "/no/where", "x")), "not_found");
  assert.equal(await codeOf(call("PATCH", "/a.txt", "x")), "method_not_allowed");
  assert.equal(await codeOf(call("PUT", "/a.txt?offset=-1", "x")), "invalid_request");
  writeFileSync(join(folder, "sub/x"), "");
  assert.equal(await codeOf(call("DELETE", "/sub")), "conflict");
});

test("G4: a token narrowed to a path and to reading stays there", async () => {
  const { call, token } = await openFolder();
  const headers = {
    authorization: `Bearer ${narrowed(token, { type: "path", path: "/sub" }, { type: "operations", operations: ["read"] })}`,
  };
  assert.equal((await call("GET", "/sub", undefined, headers)).status, 200);
  assert.equal(await codeOf(call("GET", "/a.txt", undefined, headers)), "caveat_failed");
  assert.equal(await codeOf(call("GET", "/sub/../a.txt", undefined, headers)), "caveat_failed");
  assert.equal(await codeOf(call("PUT", "/sub/y", "y", headers)), "caveat_failed");
});

/** An upload that has begun and does not go on. */
async function beginUpload({ coordinate, token, cell }: Omit<Opened, "folder">, path: string): Promise<ClientRequest> {
  const request = ask(`${coordinate}${path}`, { method: "PUT", headers: { authorization: `Bearer ${token}` } });
  request.on("error", () => {});
  request.write("begun");
  await eventually(() => (cell.core.bindings()[0]?.bytes.in ?? 0) > 0);
  return request;
}

test("G6, G9: an upload under way when the lease ends gets the typed failure, and changes nothing", async () => {
  const opened = await openFolder();
  const request = await beginUpload(opened, "/a.txt");
  const answered = once(request, "response");
  await opened.cell.core.teardown(opened.lease.id, "lease_revoked");
  const [answer] = (await answered) as [IncomingMessage];
  assert.equal(answer.statusCode, 410);
  request.destroy();
  assert.equal(readFileSync(join(opened.folder, "a.txt"), "utf8"), "0123456789");
  assert.deepEqual(readdirSync(opened.folder).sort(), ["a.txt", "inner", "link", "sub", "up"]);
  assert.equal(await codeOf(opened.call("GET", "/a.txt")), "lease_revoked");
});

test("an upload that breaks off changes nothing and leaves nothing behind", async () => {
  const opened = await openFolder();
  const request = await beginUpload(opened, "/a.txt");
  request.destroy();
  await eventually(() => opened.cell.core.bindings()[0]?.inFlight === 0);
  assert.equal(readFileSync(join(opened.folder, "a.txt"), "utf8"), "0123456789");
  assert.deepEqual(readdirSync(opened.folder).sort(), ["a.txt", "inner", "link", "sub", "up"]);
});

test("G5: of a leased range of bytes nothing else can be read or written, before it or behind it", async () => {
  const file = join(scratch, "disk.img");
  writeFileSync(file, "aaaaabbbbbccccc");
  const opened = await openWith({ file, offset: 5, length: 5 });
  const { call } = opened;
  assert.equal(await (await call("GET", "/")).text(), "bbbbb");
  assert.equal(await (await call("GET", "/?offset=1&length=2")).text(), "bb");
  assert.equal(await (await call("GET", "/", undefined, { range: "bytes=3-99" })).text(), "bb");
  assert.equal(await codeOf(call("GET", "/?offset=4&length=2")), "range_not_satisfiable");
  assert.equal(await codeOf(call("GET", "/?offset=-1&length=2")), "range_not_satisfiable");
  assert.equal(await codeOf(call("GET", "/x")), "not_found");
  assert.equal((await call("PUT", "/?offset=1", "XYZ")).status, 204);
  assert.equal(await codeOf(call("PUT", "/?offset=3", "XYZ")), "range_not_satisfiable");
  assert.equal(await codeOf(call("PUT", "/?offset=9", "X")), "range_not_satisfiable");
  assert.equal(await codeOf(call("DELETE", "/")), "method_not_allowed");
  const endless = await beginUpload(opened, "/?offset=0");
  const answered = once(endless, "response");
  endless.write("more than there is room for");
  const [answer] = (await answered) as [IncomingMessage];
  assert.equal(answer.statusCode, 416);
  endless.destroy();
  assert.equal(readFileSync(file, "utf8"), "aaaaabegunccccc");
});

test("what is only to be read is not written", async () => {
  const { call } = await openFolder({ read_only: true });
  assert.equal(await codeOf(call("PUT", "/a.txt", "x")), "method_not_allowed");
  assert.equal(await codeOf(call("DELETE", "/a.txt")), "method_not_allowed");
  assert.equal((await call("GET", "/a.txt")).status, 200);
});

test("a folder that is not there is one line about that resource", async () => {
  const cell = makeCell([{ resource, driver: "files", options: { folder: join(scratch, "nowhere") } }]);
  const faults = await cell.core.start();
  assert.match(faults.join(), /^FILE:\/shared cannot be used: ENOENT/);
});

test("G5: of a block device the leased range is read and written, and what lies outside it is not", async (t) => {
  const image = join(scratch, "device.img");
  const device = attachLoop(t, image, "aaaaabbbbbccccc".padEnd(4_096, "."));
  if (device === null) return t.skip("loop devices cannot be set up here");
  const { call, cell, lease } = await openWith({ file: device, offset: 5, length: 5 });
  assert.equal(await (await call("GET", "/")).text(), "bbbbb");
  assert.equal((await call("PUT", "/?offset=1", "XYZ")).status, 204);
  assert.equal(await (await call("GET", "/?offset=0&length=5")).text(), "bXYZb");
  assert.equal(await codeOf(call("PUT", "/?offset=3", "XYZ")), "range_not_satisfiable");
  assert.equal(await codeOf(call("GET", "/?offset=3&length=3")), "range_not_satisfiable");
  await cell.core.teardown(lease.id);
  assert.equal(readFileSync(device, "utf8").slice(0, 15), "aaaaabXYZbccccc");

  const last = await openWith({ file: device, offset: 4_090, length: 6 });
  assert.equal(await (await last.call("GET", "/")).text(), "......");
  await last.cell.core.close();
  const beyond = makeCell([{ resource, driver: "files", options: { file: device, offset: 4_090, length: 7 } }]);
  const faults = await beyond.core.start();
  assert.match(faults.join(), /cannot be used: the device ends before byte 4097/);
});

test("the size of what stat has no size for is found by reading", async () => {
  for (const size of [0, 1, 2, 511, 512, 4_097]) {
    const device = {
      read: async (_into: Buffer, _at: number, length: number, position: number) => ({
        bytesRead: Math.max(0, Math.min(length, size - position)),
      }),
    };
    for (const end of [0, 1, 512, 10_000, 2 ** 50]) assert.equal(await readableUpTo(device, end), Math.min(size, end));
  }
});

test("a range of something that is neither a file nor a block device is one line about that resource", async () => {
  const cell = makeCell([{ resource, driver: "files", options: { file: "/dev/null", length: 5 } }]);
  assert.match((await cell.core.start()).join(), /neither a file nor a block device/);
});

/** The device, or null where the system does not give one. */
function attachLoop(t: TestContext, image: string, content: string): string | null {
  writeFileSync(image, content);
  try {
    const device = execFileSync("losetup", ["--find", "--show", image], { stdio: "pipe", encoding: "utf8" }).trim();
    t.after(() => execFileSync("losetup", ["--detach", device]));
    return device;
  } catch {
    return null;
  }
}
