/** The SDK as it is published, in a real Chromium: a page of another origin, a real server, real sockets. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import chromium from "@sparticuz/chromium";
import type { Browser, Page } from "playwright-core";
import { run } from "../package/packing.ts";
import { launch } from "../page/browser.ts";
import { serve } from "./harness.ts";

/** Plain JavaScript, as the package has it; only what the SDK reaches. */
async function compiledSdk(t: TestContext): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-browser-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const settings = {
    extends: resolve("tsconfig.build.json"),
    compilerOptions: { outDir: folder, rootDir: resolve("src"), typeRoots: [resolve("node_modules/@types")] },
    include: [resolve("src/sdk/index.ts")],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
  const { code, stdout } = await run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", folder]);
  assert.equal(code, 0, stdout);
  return folder;
}

/** An empty page, and the SDK's files beside it. */
async function pagesFrom(t: TestContext, folder: string): Promise<string> {
  const server = createServer(({ url = "/" }, response) => {
    if (url === "/") return response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>");
    if (!/^\/(?:[\w-]+\/)*[\w-]+\.js$/.test(url)) return response.writeHead(404).end();
    try {
      const text = readFileSync(join(folder, url));
      return response.writeHead(200, { "content-type": "text/javascript" }).end(text);
    } catch {
      return response.writeHead(404).end();
    }
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function openBrowser(t: TestContext): Promise<Browser | string> {
  try {
    const browser = await launch({
      // Chromium's sandbox rules for pages stay as for users.
      args: chromium.args.filter((arg) => !/web-security|insecure/.test(arg)),
      headless: true,
    });
    t.after(() => browser.close());
    return browser;
  } catch (error) {
    return error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
  }
}

/** The SDK there has the types of the one here. */
type Sdk = typeof import("../../src/sdk/index.ts");

async function inPage<T>(page: Page, origin: string, options: object, work: (name: string) => T): Promise<unknown> {
  const body = `async () => {
    const sdk = await import("${origin}/sdk/index.js");
    const client = sdk.createClient(${JSON.stringify(options)});
    try { return await (${work.toString()})(sdk, client); } finally { await client.close(); }
  }`;
  return page.evaluate(`(${body})()`);
}

test("in a real browser the SDK acquires and keeps leases, learns of their end, and narrows tokens", async (t) => {
  const browser = await openBrowser(t);
  if (typeof browser === "string") return t.skip(`Chromium does not start here: ${browser}`);
  const origin = await pagesFrom(t, await compiledSdk(t));
  const server = await serve(t, { allowedOrigins: [origin] });
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(origin);

  const seen = await inPage(page, origin, { url: server.address.url }, (async (
    sdk: Sdk,
    client: Sdk["Client"]["prototype"],
  ) => {
    const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
    const kept = await client.withLease(
      "TAB:/one",
      async ({ assertHeld, leaseOf, fenceOf }) => {
        const lease = leaseOf("TAB:/one");
        const tokens = new Set([lease.token]);
        lease.onToken((token) => tokens.add(token));
        // After three heartbeats it has lasted longer than its TTL.
        while (tokens.size < 4) await pause(50);
        assertHeld();
        const narrowed = sdk.inspectToken(lease.narrow({ operations: ["read"], expiresInMs: 100 }));
        return {
          tokens: tokens.size,
          caveats: narrowed.caveats.map(({ type }) => type),
          hasFence: fenceOf("TAB:/one") > 0,
        };
      },
      { ttlMs: 3_000, tokens: true },
    );
    const lost = await client
      .withLease(
        "TAB:/two",
        async ({ leases, signal }) => {
          const isFollowing = async () =>
            (await (await client.fetch("/metrics")).text()).includes("leasehold_event_streams 1");
          while (!(await isFollowing())) await pause(50);
          await client.call("revoke", { lease_id: leases[0]?.id, reason: "maintenance" });
          signal.throwIfAborted(); // The event may arrive before the reply.
          await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        },
        { ttlMs: 120_000 },
      )
      .catch((error: unknown) => error);
    const many = await Promise.all(Array.from({ length: 60 }, () => client.call("register_agent", {})));
    let first = "";
    for await (const { type } of client.events({ since: 0, types: ["lease.granted"] })) {
      first = type;
      break;
    }
    return {
      kept,
      lost: lost instanceof sdk.LeaseLost ? [lost.end, lost.said] : String(lost),
      agents: new Set(many.map(({ agent_id: id }) => id)).size,
      first,
    };
  }) as never);
  const { kept, ...rest } = seen as { kept: { tokens: number; caveats: string[]; hasFence: boolean } };
  assert.ok(kept.tokens >= 4, `${kept.tokens} tokens`);
  assert.deepEqual([kept.caveats, kept.hasFence], [["expiry", "operations"], true]);
  assert.deepEqual(rest, { lost: ["lease_revoked", "maintenance"], agents: 60, first: "lease.granted" });

  const withKey = { url: server.address.url, key: "lhk_wrong" };
  const refused = await inPage(page, origin, withKey, (async (_sdk: Sdk, client: Sdk["Client"]["prototype"]) =>
    client
      .call("register_agent", {})
      .catch(({ code, status }: { code: string; status: number }) => [code, status])) as never);
  assert.deepEqual(refused, ["unauthorized", 401]);
  assert.deepEqual(problems, []);
});
