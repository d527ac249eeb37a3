/** Clusters of several shards: tenants in each of them, and when their leaders are spread evenly. */
import type { TestContext } from "node:test";
import type { ClusterServer } from "../../src/server/cluster/start-cluster.ts";
import type { ServerOptions } from "../../src/server/start.ts";
import { clientOf } from "../server/harness.ts";
import { type TestCluster, testCluster, until } from "./cluster-harness.ts";

export const shards = 4;
/** The first is in shard 0, and so on. */
export const tenants = ["t3", "acme", "a", "t2"] as const;

export function ledBy(server: ClusterServer): readonly number[] {
  return server.leaderships.flatMap(({ state }, shard) => (state === "leading" ? [shard] : []));
}

export function isEven(servers: readonly ClusterServer[]): boolean {
  const counts = servers.map((server) => ledBy(server).length);
  const sum = counts.reduce((all, one) => all + one, 0);
  return sum === shards && Math.max(...counts) - Math.min(...counts) <= 1;
}

export interface Spread {
  readonly cluster: TestCluster;
  readonly servers: readonly ClusterServer[];
  readonly urls: readonly string[];
}

/** That many servers, which lead about as many shards each. */
export async function evenly(t: TestContext, count: number, options: ServerOptions = {}): Promise<Spread> {
  const cluster = await testCluster(t, undefined, shards);
  const servers: ClusterServer[] = [];
  for (let n = 0; n < count; n++) servers.push(await cluster.start(options));
  await until(() => isEven(servers));
  // Each server learns a moment later who leads now; over TLS the tests wait by themselves.
  for (const { address } of servers)
    if (address.url.startsWith("http:")) for (const one of tenants) await leasesOf(address.url, one);
  return { cluster, servers, urls: servers.map(({ address }) => address.url) };
}

/** Asked again while the servers do not know yet who leads. */
export async function leasesOf(url: string, tenant: string): Promise<readonly string[]> {
  for (;;) {
    const answer = await fetch(`${url}/v1/leases`, { headers: { "leasehold-tenant": tenant } });
    const body = (await answer.json()) as { readonly leases?: readonly { readonly id: string }[] };
    if (answer.status !== 503) return (body.leases ?? []).map(({ id }) => id);
  }
}

/** By the first server, without a key. */
export async function createTenants(url: string): Promise<void> {
  for (const tenant of tenants) {
    const { status, text } = await clientOf(url).post("/v1/tenants", { tenant_id: tenant });
    if (status !== 201) throw new Error(text);
  }
}
