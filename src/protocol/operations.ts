/** All operations, in the order in which the documents show them. HTTP routes, stream, OpenAPI, MCP and SDK are made of it. */
import type { Operation } from "./operation.ts";
import { acquire, cancelRequest, getRequest, listRequests } from "./operations/acquiring.ts";
import * as agents from "./operations/agents.ts";
import { getArtifact, putArtifact } from "./operations/artifacts.ts";
import { backup } from "./operations/backup.ts";
import * as cells from "./operations/cells.ts";
import { getDigest, resumeAgent, saveDigest } from "./operations/digests.ts";
import { releaseAll, releaseLease, revoke } from "./operations/ending.ts";
import * as holding from "./operations/holding.ts";
import { createKey, deleteKey, listKeys } from "./operations/keys.ts";
import { getInbox, getLedgerHead, listObligations } from "./operations/ledger.ts";
import * as receipts from "./operations/receipts.ts";
import * as resources from "./operations/resources.ts";
import { listTaskTypes, listWorkers, setTaskType } from "./operations/task-types.ts";
import * as tasks from "./operations/tasks.ts";
import * as tenants from "./operations/tenants.ts";
import * as tokens from "./operations/tokens.ts";
import * as watching from "./operations/watching.ts";
import { heartbeatTask, pollTasks, releaseTask } from "./operations/workers.ts";

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
  listRequests,
  cancelRequest,

  holding.heartbeat,
  holding.heartbeatAll,
  holding.renewLease,
  releaseLease,
  releaseAll,
  holding.transferLease,
  holding.downgradeLease,
  holding.reportViolation,
  holding.listLeases,
  holding.getLease,
  revoke,

  resources.declareResource,
  resources.listResources,
  resources.fenceResource,
  resources.resetResource,
  resources.withdrawResource,

  cells.listCells,
  cells.readmitCell,
  cells.connectCell,
  tokens.verifyToken,

  tasks.createTask,
  tasks.createTasks,
  tasks.getTask,
  tasks.listTasks,
  tasks.cancelTask,
  tasks.explainTask,
  tasks.redriveTask,
  pollTasks,
  heartbeatTask,
  releaseTask,
  setTaskType,
  listTaskTypes,
  listWorkers,

  receipts.submitReceipt,
  receipts.submitReceipts,
  receipts.getReceipt,
  receipts.getReceiptChain,
  receipts.listReceipts,
  getInbox,
  listObligations,
  getLedgerHead,

  putArtifact,
  getArtifact,

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
  tokens.listTokenKeys,
  tokens.rotateTokenKeys,
  backup,
];

const byName: ReadonlyMap<string, Operation> = new Map(operations.map((operation) => [operation.name, operation]));

/** By its name, as the stream and MCP say it. */
export function findOperation(name: string): Operation | undefined {
  return byName.get(name);
}
