/**
 * The sessions that the helper has heard of. What a session holds is renewed as long as it works; what it holds is
 * released when its process has ended or its user has interrupted it, which no hook reports. A session that gives no sign
 * for `quiet_ms` is not renewed, and its leases run out by themselves: within 90 s in all, by default.
 *
 * Signs of life: a hook, a growing transcript, a call of its MCP server, a command that still runs.
 */

import { isGitSession } from "../git-lease.ts";
import type { HookCall } from "../hook-call.ts";
import { forgetEndedTools, lastAlive, toolOf } from "../identity.ts";
import { releaseAll, renew } from "../leasing.ts";
import type { Moment } from "../payload.ts";
import { hasYoungDescendant, isAlive, type ProcessId } from "../processes.ts";
import { agentsOf } from "../session.ts";
import { actionOf } from "../tools.ts";
import { interruption } from "./transcript.ts";

const { statSync } = process.getBuiltinModule("node:fs");

interface Watched {
  /** The last one, for its settings and credentials. */
  call: HookCall;
  tool: ProcessId | null;
  /** A process that one hook alone was below may have been there for that hook only. */
  hooksOfTool: number;
  signAt: number;
  renewedAt: number;
  transcriptLook: string;
  /** Shell commands that have begun and not ended, with when they began. */
  readonly running: Map<string, number>;
}

const renewMsMax = 5_000;
/** Between the hook's answer and the command's process its user may be asked. */
const startingMs = 10_000;
/** A session that was left at its prompt is forgotten; its next hook makes it known again. */
const keptMs = 3_600_000;

export class Sessions {
  readonly #watched = new Map<string, Watched>();
  /** By session, what is being asked of its server. */
  readonly #underWay = new Map<string, Promise<void>>();

  get isEmpty(): boolean {
    return this.#watched.size === 0 && this.#underWay.size === 0;
  }

  note(call: HookCall, moment: Moment): void {
    const { session, payload, environment } = call;
    if (moment === "end") return void this.#watched.delete(session.folder);
    if (moment === "start") forgetEndedTools(environment);
    const tool = toolOf(session);
    const known = this.#watched.get(session.folder);
    const isSame = known?.tool?.pid === tool?.pid && known?.tool?.started === tool?.started;
    const watched: Watched = known ?? {
      call,
      tool,
      hooksOfTool: 0,
      signAt: 0,
      renewedAt: Date.now(),
      transcriptLook: lookOf(payload.transcript),
      running: new Map(),
    };
    watched.call = call;
    watched.tool = tool;
    watched.hooksOfTool = isSame ? watched.hooksOfTool + 1 : 1;
    watched.signAt = Date.now();
    const key = payload.toolUseId ?? session.agentId;
    if (moment === "after" || moment === "turn-end") watched.running.delete(key);
    if (moment === "turn-end") watched.running.clear();
    if (moment === "before" && actionOf(payload.toolName, payload.toolInput)?.kind === "shell")
      watched.running.set(key, Date.now());
    this.#watched.set(session.folder, watched);
  }

  /** Each by itself: a session whose server does not answer holds up no other one's heartbeats. */
  tick(): void {
    for (const [folder, one] of this.#watched) {
      if (this.#underWay.has(folder)) continue;
      const looking = this.#look(folder, one)
        .catch(() => undefined)
        .finally(() => this.#underWay.delete(folder));
      this.#underWay.set(folder, looking);
    }
  }

  /** Resolves when nothing is under way: what is given back must have been given back before the process ends. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  async #look(folder: string, watched: Watched): Promise<void> {
    const now = Date.now();
    const { call, tool } = watched;
    const { settings, session, payload } = call;
    if (tool !== null && watched.hooksOfTool > 1 && !isAlive(tool)) {
      this.#watched.delete(folder);
      return await this.#release(call);
    }
    const look = lookOf(payload.transcript);
    if (look !== watched.transcriptLook) {
      watched.transcriptLook = look;
      watched.signAt = now;
      if (settings.hold === "turn" && payload.transcript !== null && interruption(payload.transcript)) {
        watched.running.clear();
        watched.signAt = 0;
        return await this.#release(call);
      }
    }
    watched.signAt = Math.max(watched.signAt, lastAlive(session));
    const since = Math.min(...watched.running.values());
    if (tool !== null && Number.isFinite(since)) {
      if (hasYoungDescendant(tool.pid, since)) watched.signAt = now;
      else if (now - since > startingMs) watched.running.clear();
    }
    if (now - watched.signAt > keptMs) this.#watched.delete(folder);
    const renewMs = Math.min(renewMsMax, settings.ttlMs / 4);
    if (now - watched.signAt > settings.quietMs || now - watched.renewedAt < renewMs) return;
    watched.renewedAt = now;
    for (const agent of agentsOf(session)) {
      // A git command's lease is for its time alone; nobody reports the end of one that its user has not allowed.
      if (isGitSession(agent) && watched.running.size === 0) continue;
      await renew({ ...call, session: agent });
    }
  }

  async #release(call: HookCall): Promise<void> {
    for (const agent of agentsOf(call.session)) await releaseAll({ ...call, session: agent });
  }
}

function lookOf(path: string | null): string {
  if (path === null) return "";
  try {
    const { size, mtimeMs } = statSync(path);
    return `${size} ${mtimeMs}`;
  } catch {
    return "";
  }
}
