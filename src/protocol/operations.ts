/** All operations, in the order in which the documents show them. HTTP routes, stream, OpenAPI, MCP and SDK are made of it. */

import * as agents from "./agents/agents.ts";
import { getDigest, getObservation, resumeAgent, saveDigest } from "./agents/digests.ts";
import { acquire, cancelRequest, getRequest, listRequests } from "./leases/acquiring.ts";
import { releaseAll, releaseLease, revoke } from "./leases/ending.ts";
import * as holding from "./leases/holding.ts";
import { listAudit } from "./operating/audit.ts";
import { backup } from "./operating/backup.ts";
import { getCluster, resignLeader } from "./operating/cluster.ts";
import { assignName, createKey, deleteKey, listKeys, rotateKey } from "./operating/keys.ts";
import * as policies from "./operating/policies.ts";
import * as sessions from "./operating/sessions.ts";
import * as tenants from "./operating/tenants.ts";
import type { Operation } from "./operation.ts";
import { deleteArtifact, getArtifact, listArtifacts, putArtifact } from "./receipts/artifacts.ts";
import { getInbox, getLedgerHead, listObligations, recoverObligation } from "./receipts/ledger.ts";
import * as receipts from "./receipts/receipts.ts";
import * as cells from "./resources/cells.ts";
import * as resources from "./resources/resources.ts";
import * as tokens from "./resources/tokens.ts";
import * as bulk from "./tasks/bulk.ts";
import { listTaskTypes, listWorkers, setTaskType } from "./tasks/task-types.ts";
import * as tasks from "./tasks/tasks.ts";
import { heartbeatTask, heartbeatTasks, pollTasks, releaseTask } from "./tasks/workers.ts";
import * as fleet from "./watching/fleet.ts";
import * as watching from "./watching/watching.ts";

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
  getObservation,
  resumeAgent,
  agents.verifyAll,
  agents.renewAgentToken,

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
  bulk.cancelTasks,
  bulk.redriveTasks,
  bulk.getOperation,
  pollTasks,
  heartbeatTask,
  heartbeatTasks,
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
  recoverObligation,
  getLedgerHead,

  putArtifact,
  getArtifact,
  listArtifacts,
  deleteArtifact,

  fleet.getOverview,
  fleet.listActivity,
  fleet.listWaits,
  fleet.getHistory,
  watching.events,
  watching.stream,
  watching.healthz,
  watching.readyz,
  watching.metrics,
  watching.openapi,

  listAudit,
  sessions.getSession,
  sessions.createSession,
  sessions.endSession,
  sessions.createSessionLink,
  tenants.createTenant,
  tenants.listTenants,
  tenants.suspendTenant,
  tenants.resumeTenant,
  tenants.setTenantSettings,
  tenants.setTenantQuotas,
  tenants.getUsage,
  createKey,
  listKeys,
  deleteKey,
  rotateKey,
  assignName,
  policies.setPolicy,
  policies.listPolicies,
  policies.getPolicy,
  policies.deletePolicy,
  policies.testPolicies,
  tokens.listTokenKeys,
  tokens.rotateTokenKeys,
  backup,
  getCluster,
  resignLeader,
];

const byName: ReadonlyMap<string, Operation> = new Map(operations.map((operation) => [operation.name, operation]));

/** By its name, as the stream and MCP say it. */
export function findOperation(name: string): Operation | undefined {
  return byName.get(name);
}
