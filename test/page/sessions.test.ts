import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallOptions, type Client, mutates, serve } from "../server/harness.ts";

interface SessionView {
  readonly signed_in: boolean;
  readonly sign_in: string;
  readonly role: string | null;
  readonly key_id: string | null;
  readonly csrf_token: string | null;
  readonly expires_at: string | null;
}

async function createKey({ post }: Client, role: string, key?: string): Promise<{ key: string; key_id: string }> {
  const { body, text } = await post<{ key: string; key_id: string }>("/v1/keys", { role }, { key });
  assert.ok(body.key !== undefined, text);
  return body;
}

/** What a browser keeps of a sign-in, and how it then calls. */
async function signIn(client: Client, input: object) {
  const { status, headers, body } = await client.post<SessionView>("/v1/session", input);
  const set = headers.get("set-cookie") ?? "";
  const cookie = set.split(";", 1)[0] ?? "";
  const asPage: CallOptions = { headers: { cookie, "leasehold-csrf": body.csrf_token ?? "" } };
  return { status, set, body, cookie, asPage };
}

test("S5: on loopback without keys nobody needs to sign in", async (t) => {
  const { get } = await serve(t);
  const { body } = await get<SessionView>("/v1/session");
  assert.deepEqual([body.signed_in, body.sign_in, body.role, body.csrf_token], [true, "none", "operator", null]);
});

test("S5: a key is shown once, and then an HttpOnly, SameSite=Strict cookie stands for it", async (t) => {
  const client = await serve(t);
  const { key: operator } = await createKey(client, "operator");
  const { key, key_id } = await createKey(client, "reader", operator);
  assert.deepEqual((await client.get<SessionView>("/v1/session")).body.sign_in, "key");

  const { status, set, body, asPage } = await signIn(client, { key });
  assert.deepEqual([status, body.signed_in, body.role, body.key_id], [201, true, "reader", key_id]);
  assert.match(set, /^leasehold_\w+=lhs1\.[^;]+; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  assert.doesNotMatch(set, /Path|Domain/i, "the browser takes the folder of the request, whatever prefix it has");
  assert.ok(!set.includes(key), "the key itself is not in the cookie");
  assert.equal((await client.get("/v1/leases", asPage)).status, 200);
  assert.equal((await client.post("/v1/revoke", { agent_id: "a", reason: "r" }, asPage)).status, 403, "a reader's");

  const out = await client.call<SessionView>("DELETE", "/v1/session", undefined, asPage);
  assert.equal(out.body.signed_in, false);
  assert.match(out.headers.get("set-cookie") ?? "", /Max-Age=0/);
});

test("S5: a cookie alone opens no tool for clients that show their key in the call", async (t) => {
  const client = await serve(t);
  const { key } = await createKey(client, "operator");
  const { cookie } = await signIn(client, { key });
  const name = "asyncgate.create_task";
  const create = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: { type: "t", payload: {} } },
  };
  for (const path of ["/mcp/legivellum", "/mcp"]) {
    const refused = await client.post(path, create, { headers: { cookie } });
    assert.ok([401, 403].includes(refused.status), `${path}: ${refused.status} ${refused.text}`);
  }
  assert.equal((await client.get<{ tasks: unknown[] }>("/v1/tasks", { key })).body.tasks.length, 0);
});

test("S5: a cookie alone changes nothing: without the page's token, or from another origin, it is refused", async (t) => {
  const client = await serve(t, { allowedOrigins: ["https://other.example"] });
  const { key } = await createKey(client, "operator");
  const { cookie, asPage, body } = await signIn(client, { key });
  await client.post("/v1/agents", { agent_id: "alice" }, asPage);
  const asked = { agent_id: "alice", intents: mutates("FILE:/a") };
  for (const headers of [
    { cookie },
    { cookie, "leasehold-csrf": "" },
    { cookie, "leasehold-csrf": `${body.csrf_token}x` },
    { ...asPage.headers, origin: "https://other.example" },
  ]) {
    const refused = await client.post("/v1/acquire", asked, { headers });
    assert.deepEqual([refused.status, refused.body.error], [403, "csrf_failed"], JSON.stringify(headers));
  }
  const foreign = await client.post("/v1/acquire", asked, {
    headers: { ...asPage.headers, origin: "http://evil.example" },
  });
  assert.equal(foreign.body.error, "origin_not_allowed");
  const sameSite = { ...asPage.headers, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" };
  assert.equal((await client.get("/v1/leases", { headers: sameSite })).body.error, "origin_not_allowed");
  assert.equal((await client.post("/v1/acquire", asked, asPage)).status, 200);
});

test("S5: a session ends with its key, is bound to its server, and cannot be made up or changed", async (t) => {
  const client = await serve(t);
  const { key } = await createKey(client, "operator");
  const second = await createKey(client, "supervisor", key);
  const { asPage, cookie } = await signIn(client, { key: second.key });
  assert.equal((await client.get("/v1/leases", asPage)).status, 200);

  const raised = cookie.replace(second.key_id, "key_0000000000000000");
  for (const wrong of [raised, `${cookie}x`, cookie.replace("lhs1.", "lhs2."), `${cookie.split("=")[0]}=`]) {
    assert.equal((await client.get("/v1/leases", { headers: { cookie: wrong } })).status, 401, wrong);
  }
  const other = await serve(t);
  await createKey(other, "operator");
  assert.equal((await other.get("/v1/leases", { headers: { cookie } })).status, 401);

  await client.call("DELETE", `/v1/keys/${second.key_id}`, undefined, { key });
  assert.equal((await client.get("/v1/leases", asPage)).status, 401);
  const view = await client.get<SessionView>("/v1/session", asPage);
  assert.equal(view.body.signed_in, false);
  assert.match(view.headers.get("set-cookie") ?? "", /Max-Age=0/, "the browser forgets what is no longer good");
});

test("S5: a link signs in once, as the credential that made it, and an agent's token makes none", async (t) => {
  const client = await serve(t);
  const { key } = await createKey(client, "operator");
  const reader = await createKey(client, "reader", key);
  const { status, body } = await client.post<{ path: string }>("/v1/session/link", {}, { key: reader.key });
  assert.equal(status, 201);
  const code = /^\/#\/sign-in\/([\w-]{32})$/.exec(body.path)?.[1];
  const { body: session } = await signIn(client, { code });
  assert.deepEqual([session.role, session.key_id], ["reader", reader.key_id]);
  assert.equal((await signIn(client, { code })).status, 401, "it was used");

  const { body: agent } = await client.post<{ agent_token: string }>("/v1/agents", { agent_id: "alice" }, { key });
  assert.equal((await client.post("/v1/session/link", {}, { key: agent.agent_token })).status, 403);
  const asAgent = await signIn(client, { key: agent.agent_token });
  assert.deepEqual([asAgent.status, asAgent.body.role], [201, "agent"], "a session of its own acts as the agent alone");
  assert.equal((await client.post("/v1/revoke", { agent_id: "alice", reason: "r" }, asAgent.asPage)).status, 403);
  assert.equal((await client.get("/v1/leases", asAgent.asPage)).status, 200);
});

test("S5: a session makes no link, by which it would outlast itself, and no key pushes out another's links", async (t) => {
  const client = await serve(t);
  const { key: operator } = await createKey(client, "operator");
  const { key: reader } = await createKey(client, "reader", operator);
  const { asPage } = await signIn(client, { key: reader });
  const own = await client.post("/v1/session/link", {}, asPage);
  assert.deepEqual([own.status, own.body.error], [403, "forbidden"]);

  const link = async (key: string) => (await client.post<{ path: string }>("/v1/session/link", {}, { key })).body.path;
  const wanted = await link(operator);
  const first = await link(reader);
  for (let n = 0; n < 40; n++) await link(reader);
  const last = await link(reader);
  const redeem = async (path: string) => (await signIn(client, { code: path.slice(path.lastIndexOf("/") + 1) })).status;
  assert.deepEqual([await redeem(wanted), await redeem(first), await redeem(last)], [201, 401, 201]);
});

test("S5: a cookie that another program of the site has set beside a session neither replaces it nor ends it", async (t) => {
  const client = await serve(t);
  const { key: operator } = await createKey(client, "operator");
  const victim = await createKey(client, "supervisor", operator);
  const attacker = await createKey(client, "supervisor", operator);
  const { cookie } = await signIn(client, { key: victim.key });
  const tossed = await signIn(client, { key: attacker.key });
  const [name = ""] = cookie.split("=", 1);
  const seen = async (cookies: string) => {
    const { body } = await client.get<SessionView>("/v1/session", { headers: { cookie: cookies } });
    return body.key_id;
  };
  // A cookie with a longer path, or an older one, comes first.
  for (const junk of [
    `${name}=`,
    `${name}=lhs1.x.1.2.y.z`,
    `${name}="${attacker.key_id}"`,
    tossed.cookie.slice(0, -1),
  ]) {
    assert.equal(await seen(`${junk}; ${cookie}`), victim.key_id, junk);
    assert.equal(await seen(`${cookie}; ${junk}`), victim.key_id, junk);
  }
  assert.equal(await seen(`${cookie}; ${cookie}`), victim.key_id, "the same twice");
  for (const both of [`${tossed.cookie}; ${cookie}`, `${cookie}; ${tossed.cookie}`]) {
    assert.equal(await seen(both), null, "nobody can say which of two sessions is meant");
    assert.equal((await client.get("/v1/leases", { headers: { cookie: both } })).status, 401);
  }
  const many = Array.from({ length: 200 }, (_, n) => `${name}=lhs1.${n}`).join("; ");
  assert.equal(await seen(`${many}; ${cookie}`), null, "each costs a check, so of very many none is taken");
});

test("S5: a session that was signed out is over for every copy of its cookie, and no other session is", async (t) => {
  const client = await serve(t, { signOfLifeMs: 50 });
  const { key } = await createKey(client, "operator");
  const { asPage, cookie } = await signIn(client, { key });
  const other = await signIn(client, { key });
  const copy: CallOptions = { headers: { ...asPage.headers } };
  assert.equal((await client.get("/v1/leases", copy)).status, 200);
  const following = await fetch(`${client.address.url}/v1/events`, { headers: { cookie } });
  await client.call("DELETE", "/v1/session", undefined, asPage);
  assert.equal((await client.get("/v1/leases", copy)).status, 401);
  assert.equal((await client.post("/v1/agents", { agent_id: "a" }, copy)).status, 401);
  assert.equal((await client.get("/v1/leases", other.asPage)).status, 200);
  // What the copy follows ends too.
  for await (const _ of following.body ?? []);
});

test("S4: what is remembered of a key's signed-out sessions is bounded, and none of them comes back", async (t) => {
  const client = await serve(t);
  const { key } = await createKey(client, "operator");
  const reader = await createKey(client, "reader", key);
  const mine = await signIn(client, { key });
  const cookies: string[] = [];
  for (let n = 0; n < 300; n++) {
    const { cookie } = await signIn(client, { key: reader.key });
    await client.call("DELETE", "/v1/session", undefined, { headers: { cookie } });
    cookies.push(cookie);
  }
  for (const cookie of [cookies[0], cookies[40], cookies[299]])
    assert.equal((await client.get("/v1/leases", { headers: { cookie: cookie ?? "" } })).status, 401);
  const later = await signIn(client, { key: reader.key });
  assert.equal((await client.get("/v1/leases", later.asPage)).status, 200, "a new session of the same key");
  assert.equal((await client.get("/v1/leases", mine.asPage)).status, 200, "another key's");
});

test("S5: with --owner-only the owner's token makes the link, and nothing else signs in", async (t) => {
  const client = await serve(t, { ownerOnly: true });
  const { findOwner } = await import("../../src/trust/owner-token.ts");
  const owner = findOwner(client.address.url, process.env);
  assert.ok(owner !== null);
  assert.deepEqual((await client.get<SessionView>("/v1/session")).body.sign_in, "link");
  assert.equal((await client.get("/v1/leases")).status, 401);
  const { body } = await client.post<{ path: string }>("/v1/session/link", {}, { key: owner.token });
  const { body: session, asPage } = await signIn(client, { code: body.path.split("/").at(-1) });
  assert.equal(session.role, "operator");
  assert.equal((await client.get("/v1/leases", asPage)).status, 200);
});

test("S5: wrong keys at sign-in count as failed logins", async (t) => {
  const client = await serve(t, { authFailureLimit: 1 });
  await createKey(client, "operator");
  const statuses = new Set<number>();
  for (let n = 0; n < 30; n++) statuses.add((await signIn(client, { key: `lhk_wrong${n}` })).status);
  assert.deepEqual([...statuses].sort(), [401, 429]);
});

test("the page is served whole or not at all, with a strict policy, compressed, and its files are kept for ever", async (t) => {
  const { address } = await serve(t);
  const page = await fetch(`${address.url}/`);
  const html = await page.text();
  assert.equal(page.status, 200);
  assert.equal(page.headers.get("cache-control"), "no-cache");
  const policy = page.headers.get("content-security-policy") ?? "";
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) {
    assert.ok(policy.includes(part), part);
  }
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  const etag = page.headers.get("etag") ?? "";
  assert.equal((await fetch(`${address.url}/`, { headers: { "if-none-match": etag } })).status, 304);
  const files = [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, path]) => path ?? "");
  assert.ok(files.some((path) => path.endsWith(".js")) && files.every((path) => !path.startsWith("/")));
  let weight = html.length;
  for (const path of files.filter((one) => one.startsWith("assets/"))) {
    const file = await fetch(`${address.url}/${path}`, { headers: { "accept-encoding": "br" } });
    assert.deepEqual([file.status, file.headers.get("content-encoding")], [200, "br"], path);
    assert.match(file.headers.get("cache-control") ?? "", /immutable/);
    weight += Number(file.headers.get("content-length"));
  }
  assert.ok(weight > 10_000 && weight < 150_000, `${weight} bytes compressed`);
  for (const path of ["/assets/nothing.js", "/assets/..%2f..%2fpackage.json", "/assets/../package.json"]) {
    assert.equal((await fetch(`${address.url}${path}`)).status, 404, path);
  }
});
