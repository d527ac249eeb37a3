/** Who a client is, and what its browser has, wherever in a cluster it comes in. */
import assert from "node:assert/strict";
import { type OutgoingHttpHeaders, request } from "node:http";
import { type TestContext, test } from "node:test";
import type { ClusterServer } from "../../src/server/cluster/start-cluster.ts";
import { clientOf } from "../server/harness.ts";
import { testCluster } from "./cluster-harness.ts";

interface Sent {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** From an address of this machine's own network, as another client would come. */
function sendFrom(localAddress: string, url: string, body: object, headers: OutgoingHttpHeaders = {}): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const more = { "content-type": "application/json", ...headers };
    const sent = request(url, { method: "POST", localAddress, headers: more, agent: false }, async (answer) => {
      let text = "";
      for await (const chunk of answer) text += String(chunk);
      const parsed: unknown = text.startsWith("{") ? JSON.parse(text) : {};
      resolve({ status: answer.statusCode, headers: answer.headers, body: parsed as Sent["body"] });
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}

async function three(t: TestContext, options: object = {}) {
  const cluster = await testCluster(t);
  const leader = await cluster.start(options);
  const followers = [
    await cluster.start({ ...options, noLead: true }),
    await cluster.start({ ...options, noLead: true }),
  ];
  const urlOf = ({ address }: ClusterServer): string => address.url;
  const [near = "", far = ""] = followers.map(urlOf);
  const operator = await clientOf(urlOf(leader)).post<{ key: string }>("/v1/keys", { role: "operator" });
  return { leader: urlOf(leader), near, far, key: operator.body.key };
}

const creating = (label: string) => ({ role: "reader", label });

test("S7: behind another server the audit log has the client's own address, and believes nobody else's word for it", async (t) => {
  const { leader, near, key } = await three(t);
  const authorization = `Bearer ${key}`;
  const passedOn = { authorization, "x-forwarded-for": "203.0.113.9" };
  await sendFrom("127.0.0.2", `${near}/v1/keys`, creating("near"), { authorization });
  await sendFrom("127.0.0.3", `${leader}/v1/keys`, creating("leader"), { authorization });
  // What it says at the leader as if it were another server.
  for (const value of ["203.0.113.9", "1", `203.0.113.9 ${"A".repeat(43)}`, ""]) {
    const forged = { ...passedOn, "leasehold-passed-on": value };
    await sendFrom("127.0.0.4", `${leader}/v1/keys`, creating("forged"), forged);
    const refused = await sendFrom("127.0.0.4", `${near}/v1/keys`, creating("forged"), forged);
    assert.equal(refused.status, 503);
  }
  const call = { name: "create_key", arguments: creating("mcp") };
  const rpc = { jsonrpc: "2.0", id: 1, method: "tools/call", params: call };
  const mcp = { authorization, accept: "application/json", "mcp-protocol-version": "2025-11-25" };
  assert.equal((await sendFrom("127.0.0.5", `${near}/mcp?toolsets=all`, rpc, mcp)).status, 200);
  const resigned = await sendFrom("127.0.0.6", `${near}/v1/cluster/resign`, {}, { authorization });
  assert.equal(resigned.status, 400, "nobody else may lead");
  const { body } = await clientOf(leader).get<{ entries: { address: string | null }[] }>(
    "/v1/audit?action=create_key",
    { key },
  );
  const addresses = body.entries.map(({ address }) => address?.replace("::ffff:", ""));
  assert.deepEqual(addresses.slice(1), [
    ...["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.4", "127.0.0.4", "127.0.0.4"],
    "127.0.0.5",
  ]);
});

test("S4: failed logins through another server count for the client's own address", async (t) => {
  const { near } = await three(t, { authFailureLimit: 1 });
  const attempt = async (from: string) =>
    (await sendFrom(from, `${near}/v1/keys`, creating("x"), { authorization: "Bearer lhk_wrong" })).status;
  let status = await attempt("127.0.0.7");
  for (let n = 0; n < 40 && status !== 429; n++) status = await attempt("127.0.0.7");
  assert.equal(status, 429);
  assert.equal(await attempt("127.0.0.8"), 401, "another client of the same server");
});

test("S5: a link and a session are one for all servers: redeemed once, and signed out everywhere", async (t) => {
  const { leader, near, far, key } = await three(t);
  const link = await clientOf(near).post<{ path: string }>("/v1/session/link", {}, { key });
  const code = link.body.path.split("/").at(-1);
  const redeemed = await Promise.all(
    [near, far, leader, near, far].map((url) => sendFrom("127.0.0.1", `${url}/v1/session`, { code })),
  );
  assert.deepEqual(redeemed.map(({ status }) => status).sort(), [201, 401, 401, 401, 401]);
  const cookie = String(redeemed.find(({ status }) => status === 201)?.headers["set-cookie"]).split(";", 1)[0] ?? "";
  const seen = (url: string) => clientOf(url).get("/v1/leases", { headers: { cookie } });
  for (const url of [leader, near, far]) assert.equal((await seen(url)).status, 200, url);
  await clientOf(far).call("DELETE", "/v1/session", undefined, { headers: { cookie } });
  for (const url of [leader, near, far]) assert.equal((await seen(url)).status, 401, url);
});
