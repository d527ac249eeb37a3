/** All operations, in the order in which the documents show them. HTTP routes, stream, OpenAPI, MCP and SDK are made of it. */
import type { Operation } from "./operation.ts";
import { acquire, cancelRequest, getRequest } from "./operations/acquiring.ts";
import * as agents from "./operations/agents.ts";
import { backup } from "./operations/backup.ts";
import { getDigest, resumeAgent, saveDigest } from "./operations/digests.ts";
import { releaseAll, releaseLease, revoke } from "./operations/ending.ts";
import * as holding from "./operations/holding.ts";
import { createKey, deleteKey, listKeys } from "./operations/keys.ts";
import * as resources from "./operations/resources.ts";
import * as tenants from "./operations/tenants.ts";
import * as watching from "./operations/watching.ts";

export const operations: readonly Operation[] = [
  agents.registerAgent,
  agents.listAgents,
  agents.getAgent,
  agents.transitionAgent,
  agents.restartAgent,
  agents.pauseAgent,
  agents.unpauseAgent,
  saveDigest,
  getDigest,
  resumeAgent,
  agents.verifyAll,

  acquire,
  getRequest,
  cancelRequest,

  holding.heartbeat,
  holding.heartbeatAll,
  holding.renewLease,
  releaseLease,
  releaseAll,
  holding.transferLease,
  holding.downgradeLease,
  holding.listLeases,
  holding.getLease,
  revoke,

  resources.declareResource,
  resources.listResources,
  resources.fenceResource,
  resources.resetResource,
  resources.withdrawResource,
  resources.listCells,

  watching.events,
  watching.stream,
  watching.healthz,
  watching.readyz,
  watching.metrics,
  watching.openapi,

  tenants.createTenant,
  tenants.listTenants,
  tenants.suspendTenant,
  tenants.resumeTenant,
  tenants.setTenantSettings,
  tenants.setTenantQuotas,
  createKey,
  listKeys,
  deleteKey,
  backup,
];

const byName: ReadonlyMap<string, Operation> = new Map(operations.map((operation) => [operation.name, operation]));

/** By its name, as the stream and MCP say it. */
export function findOperation(name: string): Operation | undefined {
  return byName.get(name);
}
