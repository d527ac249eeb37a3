/** The commands that take more than submitting and encoding, each with its own `run` beside its noun. */
import type { Decoded } from "../protocol/operation.ts";
import { CommandRun, type Run, type RunRequest } from "./answering/command-run.ts";
import { runRegister, runResume } from "./auth/agent-runs.ts";
import { runCreateKey, runDeleteKey } from "./auth/key-ring.ts";
import { runRenew } from "./cells/renewing.ts";
import { runReset } from "./cells/resetting.ts";
import { runRotate } from "./cells/token-keys.ts";
import { runReceipt, runReceipts } from "./receipts/receiving.ts";
import { runCreateTask, runCreateTasks } from "./tasks/creating-tasks.ts";
import { runHeld } from "./tasks/held-requests.ts";
import { runPoll } from "./tasks/polls.ts";

type RunOf<T extends Decoded["type"]> = (request: RunRequest<Extract<Decoded, { type: T }>>) => (() => void) | null;

const runs: { readonly [T in Decoded["type"]]?: RunOf<T> } = {
  acquire: runHeld,
  collect_request: runHeld,
  register_agent: runRegister,
  resume_agent: runResume,
  create_key: runCreateKey,
  delete_key: runDeleteKey,
  poll_tasks: runPoll,
  create_task: runCreateTask,
  create_tasks: runCreateTasks,
  submit_receipt: runReceipt,
  submit_receipts: runReceipts,
  renew_lease: runRenew,
  reset_resource: runReset,
  rotate_token_keys: runRotate,
};

export function run(request: RunRequest): ReturnType<Run> {
  const { service, operation, command, respond } = request;
  // The table gives each type the run for it.
  const own = runs[command.type] as Run | undefined;
  if (own !== undefined) return own(request);
  switch (command.type) {
    case "create_tasks":
    case "submit_receipts":
    case "rotate_token_keys":
      throw new TypeError(`${command.type} is not a command of the kernel`);
    default:
      service.engine.submit(command, new CommandRun(service, operation, command, respond));
      return null;
  }
}
