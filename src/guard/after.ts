/** After a tool has run: what its files are now is noted, and its leases are kept alive. */
import type { Lease } from "../sdk/wire.ts";
import { type HookAnswer, pass } from "./answers.ts";
import { Unreachable } from "./control-plane.ts";
import type { HookCall } from "./hook-call.ts";
import { planWrites, type TargetFile } from "./intents.ts";
import { renew, reportActivity, takeKept } from "./leasing.ts";
import { noteGranted } from "./own-leases.ts";
import { covers, type Target } from "./targets.ts";
import { actionOf } from "./tools.ts";
import { unseenWords } from "./unseen.ts";
import { noteWritten } from "./versions.ts";
import { plain } from "./words.ts";

export async function after(call: HookCall): Promise<HookAnswer> {
  const unseen = unseenWords(call);
  noteGranted(call.session, call.payload.toolName, call.payload.toolResponse);
  const answer = await afterTool(call, unseen !== null);
  const said = [unseen, takeKept(call.session), answer.context].filter((text) => text !== null);
  return {
    ...answer,
    context: said.length === 0 ? null : said.join("\n"),
    notice: [unseen, answer.notice].filter((text) => text !== null).join("\n") || null,
  };
}

async function afterTool(call: HookCall, isUnseen: boolean): Promise<HookAnswer> {
  const { payload, settings } = call;
  const action = actionOf(payload.toolName, payload.toolInput);
  if (action === null || action.kind === "none") return pass;
  try {
    switch (action.kind) {
      case "read":
        await renew(call);
        return pass;
      case "write":
        return await afterWrite(call, planWrites(action, payload.cwd).files);
      case "shell":
        return await (await import("./after-shell.ts")).afterShell(call, action.command, isUnseen);
    }
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    // The next write is denied if it is still so; what was done is not undone by saying more.
    return { ...pass, notice: `Leasehold: no server answers at ${settings.url}: ${plain(error.message)}` };
  }
}

/** The tool may have asked its user meanwhile, for longer than the lease lasted. */
async function afterWrite(call: HookCall, files: readonly TargetFile[]): Promise<HookAnswer> {
  const held = await renew(call);
  const unleased: Target[] = [];
  const changed: Lease[] = [];
  for (const { target } of files) {
    const own = held.find(({ resource }) => covers(resource, target.resource));
    if (own === undefined) unleased.push(target);
    else if (noteWritten(call, target)) changed.push(own);
  }
  await reportActivity(call, changed);
  const [first] = unleased;
  if (first === undefined) return pass;
  return await (await import("./judging.ts")).judgeUnleased(call, first.repository, unleased);
}
