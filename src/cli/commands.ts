/** All commands, in the order in which help shows them. */
import type { Command } from "./command.ts";
import { acquireCommand } from "./commands/acquire.ts";
import * as agents from "./commands/agents.ts";
import { backupCommand } from "./commands/backup.ts";
import { cellCommand } from "./commands/cell.ts";
import * as cells from "./commands/cells.ts";
import { completionCommand } from "./commands/completion.ts";
import { digestCommand } from "./commands/digest.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { eventsCommand } from "./commands/events.ts";
import * as guard from "./commands/guard.ts";
import { helpCommand } from "./commands/help.ts";
import { inboxCommand } from "./commands/inbox.ts";
import { initCommand } from "./commands/init.ts";
import * as keys from "./commands/keys.ts";
import * as ledger from "./commands/ledger.ts";
import { lsCommand } from "./commands/ls.ts";
import { mcpCommand } from "./commands/mcp.ts";
import { receiptsCommand } from "./commands/receipts.ts";
import { releaseCommand } from "./commands/release.ts";
import { renewCommand } from "./commands/renew.ts";
import * as resources from "./commands/resources.ts";
import { restoreCommand } from "./commands/restore.ts";
import { revokeCommand } from "./commands/revoke.ts";
import { runCommand } from "./commands/run.ts";
import { serveCommand } from "./commands/serve.ts";
import * as tasks from "./commands/tasks.ts";
import * as tenants from "./commands/tenants.ts";
import * as token from "./commands/token.ts";
import * as tokenKeys from "./commands/token-keys.ts";
import { topCommand } from "./commands/top.ts";
import { transferCommand } from "./commands/transfer.ts";
import { verifyCommand } from "./commands/verify.ts";
import { workCommand } from "./commands/work.ts";

export const commands: readonly Command[] = [
  runCommand,
  workCommand,
  acquireCommand,
  renewCommand,
  releaseCommand,
  transferCommand,
  verifyCommand,
  revokeCommand,
  lsCommand,
  topCommand,
  agents.agentsCommand,
  agents.agentsRegisterCommand,
  agents.agentsPauseCommand,
  agents.agentsUnpauseCommand,
  digestCommand,
  resources.resourcesCommand,
  resources.resourcesDeclareCommand,
  resources.resourcesFenceCommand,
  resources.resourcesResetCommand,
  resources.resourcesWithdrawCommand,
  cellCommand,
  cells.cellsCommand,
  cells.cellsWithdrawCommand,
  cells.cellsReadmitCommand,
  token.tokenInspectCommand,
  token.tokenNarrowCommand,
  tokenKeys.tokenVerifyCommand,
  tokenKeys.tokenRotateCommand,
  eventsCommand,
  tasks.tasksAddCommand,
  tasks.tasksListCommand,
  tasks.tasksShowCommand,
  tasks.tasksExplainCommand,
  tasks.tasksCancelCommand,
  tasks.tasksRedriveCommand,
  receiptsCommand,
  inboxCommand,
  ledger.ledgerVerifyCommand,
  ledger.ledgerExportCommand,
  ledger.ledgerHeadCommand,
  initCommand,
  guard.guardInstallCommand,
  guard.guardStatusCommand,
  guard.guardUninstallCommand,
  guard.guardClaimCommand,
  guard.guardHookCommand,
  serveCommand,
  mcpCommand,
  doctorCommand,
  keys.keysCreateCommand,
  keys.keysListCommand,
  keys.keysDeleteCommand,
  tenants.tenantsListCommand,
  tenants.tenantsCreateCommand,
  tenants.tenantsSuspendCommand,
  tenants.tenantsResumeCommand,
  tenants.tenantsSetCommand,
  backupCommand,
  restoreCommand,
  completionCommand,
  helpCommand,
];
