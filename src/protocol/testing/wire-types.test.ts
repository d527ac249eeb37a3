import assert from "node:assert/strict";
import { test } from "node:test";
import { leaseObject } from "../leases/lease-json.ts";
import { agentObject, digestObject, keyObject, resourceObject, tenantObject } from "../operating/record-json.ts";
import {
  sampleAgent,
  sampleDigest,
  sampleKey,
  sampleLease,
  sampleNow,
  sampleResource,
  sampleTenant,
} from "./sample-records.ts";
import type {
  AcquireInput,
  WireAgent,
  WireDigest,
  WireKey,
  WireLease,
  WireResource,
  WireTenant,
} from "./wire-types.ts";

test("the types that clients see are those of what is sent: this compiles", () => {
  const lease: WireLease = leaseObject(sampleLease(), sampleNow);
  const agent: WireAgent = agentObject(sampleAgent());
  const digest: WireDigest = digestObject(sampleDigest());
  const resource: WireResource = resourceObject(sampleResource());
  const tenant: WireTenant = tenantObject(sampleTenant());
  const key: WireKey = keyObject(sampleKey());
  const input: AcquireInput = {
    agent_id: "agt_1",
    intents: [{ predicate: "MUTATES", resource: "FILE:/a" }],
    ttl_ms: null,
  };
  // @ts-expect-error a predicate is one of six
  const wrong: AcquireInput = { agent_id: "agt_1", intents: [{ predicate: "WRITES", resource: "FILE:/a" }] };
  assert.equal([lease, agent, digest, resource, tenant, key, input, wrong].length, 8);
});
