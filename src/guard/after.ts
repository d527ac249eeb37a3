/** After a tool has run: what its files are now is noted, and its leases are kept alive. */
import { type HookAnswer, pass } from "./answers.ts";
import { Unreachable } from "./control-plane.ts";
import type { HookCall } from "./hook-call.ts";
import { planWrites } from "./intents.ts";
import { renew } from "./leasing.ts";
import { noteRead, noteWritten } from "./noting.ts";
import { actionOf } from "./tools.ts";
import { plain } from "./words.ts";

export async function after(call: HookCall): Promise<HookAnswer> {
  const { payload, session, settings } = call;
  const action = actionOf(payload.toolName, payload.toolInput);
  if (action === null || action.kind === "none") return pass;
  try {
    switch (action.kind) {
      case "read":
        for (const path of action.paths) noteRead(session.agentFolder, path, payload.cwd);
        await renew(call, true);
        return pass;
      case "write":
        for (const { target } of planWrites(action, payload.cwd).files) noteWritten(call, target);
        await renew(call, true);
        return pass;
      case "shell":
        return await (await import("./after-shell.ts")).afterShell(call, action.command);
    }
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    // The next write is denied if it is still so; what was done is not undone by saying more.
    return { ...pass, notice: `Leasehold: no server answers at ${settings.url}: ${plain(error.message)}` };
  }
}
