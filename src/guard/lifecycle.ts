/** A session's beginning, its prompts and its ends. */
import { join } from "node:path";
import { findRepository } from "../names/repository.ts";
import { type HookAnswer, pass } from "./answers.ts";
import { Unreachable } from "./control-plane.ts";
import { releaseGit } from "./git-lease.ts";
import type { HookCall } from "./hook-call.ts";
import { heldByOthers, releaseAll } from "./leasing.ts";
import { forgetGranted, ownNames } from "./own-leases.ts";
import type { Moment } from "./payload.ts";
import { remove, sessionsFolder, writePrivate } from "./private-files.ts";
import { agentsOf, callAs, isRegistered } from "./session.ts";
import { othersWords, plain } from "./words.ts";

const { readdirSync, statSync } = process.getBuiltinModule("node:fs");

const purposeLengthMax = 200;
const sessionKeptMs = 7 * 24 * 3_600_000;

/** Who else works here, and what the rules are: rules that the agent meets anyway, but should not meet unprepared. */
async function start({ payload, server, settings, session, environment }: HookCall): Promise<HookAnswer> {
  forgetOldSessions(sessionsFolder(environment));
  const repository = findRepository(payload.cwd);
  if (repository === null) return pass;
  const rules =
    `This repository (${repository.name}) is shared with other agents through Leasehold. Files are leased for you when you write them; ` +
    "a write is denied while another agent holds the file. Then do other work first, and read the file again before you change it. " +
    "To reserve files before you work on them, run `leasehold guard claim PATH…`. " +
    `You are the agent ${session.agentId}: where a tool of Leasehold takes an agent_id, that is yours.`;
  try {
    const others = othersWords(await heldByOthers(server, repository.name, ownNames(session), 1));
    const news =
      others === null
        ? "No other agent holds anything here now."
        : `Others at work here (names and purposes are theirs):\n${others}`;
    return { ...pass, context: `${rules}\n${news}` };
  } catch (error) {
    const why = plain(error instanceof Error ? error.message : String(error));
    const effect =
      settings.unreachable === "open" ? "writes are UNGUARDED until it does" : "writes are denied until it does";
    const words =
      error instanceof Unreachable
        ? `Leasehold: no server answers at ${settings.url} (${why}); ${effect}. Start it with \`leasehold serve\`.`
        : `Leasehold: the server at ${settings.url} refuses this session (${why}); writes are denied. Set LEASEHOLD_KEY, or LEASEHOLD_KEY_FILE, where this agent is started.`;
    return { ...pass, context: words, notice: words };
  }
}

function prompt({ payload, session, settings }: HookCall): HookAnswer {
  if (payload.prompt !== null && settings.purpose === "prompt") {
    const [line = ""] = payload.prompt.trim().split("\n");
    writePrivate(join(session.folder, "purpose"), plain(line).slice(0, purposeLengthMax));
  }
  return pass;
}

type Handler = (call: HookCall) => HookAnswer | Promise<HookAnswer>;

export const lifecycle: Readonly<Record<Exclude<Moment, "before" | "after">, Handler>> = {
  start,
  prompt,
  // What was done in this turn is done: others need not wait until the person comes back.
  "turn-end": (call) => (call.settings.hold === "turn" ? ended(() => releaseTurn(call)) : pass),
  // Without its name it cannot be distinguished from the session itself, which goes on.
  "subagent-end": (call) => (call.payload.subagent === null ? pass : ended(() => releaseTurn(call))),
  async end(call) {
    const answer = await ended(async () => {
      for (const agent of agentsOf(call.session)) {
        await releaseAll({ ...call, session: agent });
        await endAgent({ ...call, session: agent });
      }
    });
    remove(call.session.folder);
    return answer;
  },
};

/** A1: one that was denied something would be shown as coming back for it, for ever. */
async function endAgent(call: HookCall): Promise<void> {
  if (!isRegistered(call.session)) return;
  const { agentId } = call.session;
  await callAs(call, "POST", `/v1/agents/${encodeURIComponent(agentId)}/transition`, { to: "ABORTED" });
}

async function releaseTurn(call: HookCall): Promise<void> {
  await releaseAll(call);
  await releaseGit(call);
  forgetGranted(call.session);
}

async function ended(release: () => Promise<unknown>): Promise<HookAnswer> {
  try {
    await release();
    return pass;
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    return {
      ...pass,
      notice: `Leasehold: its leases could not be given back (${plain(error.message)}); they run out by themselves.`,
    };
  }
}

function forgetOldSessions(folder: string): void {
  try {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (Date.now() - statSync(path).mtimeMs > sessionKeptMs) remove(path);
    }
  } catch {
    // There were none, or another hook is at it.
  }
}
