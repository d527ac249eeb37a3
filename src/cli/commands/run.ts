/** `flock` for fleets: a command that runs only while its leases are held. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Actor } from "../../sdk/actor.ts";
import { AgentToken } from "../../sdk/agent-token.ts";
import type { Timed } from "../../sdk/client.ts";
import { Holding } from "../../sdk/holding.ts";
import { type LeaseLost, lookUpHolders } from "../../sdk/lease-lost.ts";
import type { Granted } from "../../sdk/wire.ts";
import { acquire, waitFlags, waitMsOf } from "../acquiring.ts";
import { actingAgent, agentFlag } from "../acting.ts";
import type { Call, Command } from "../command.ts";
import { addressEnvironment } from "../connection.ts";
import { exitCodes } from "../exit-codes.ts";
import { withoutKeys } from "../key-file.ts";
import { noteChanges } from "../lease-words.ts";
import { anyFlag, manifestFlags, readChoice } from "../manifest.ts";
import { Failure, isServerError, UsageProblem } from "../problem.ts";
import { type Child, startChild } from "../supervision/child.ts";
import { findCommand } from "../supervision/find-command.ts";
import { Restarts } from "../supervision/restarts.ts";
import { PassedSignals } from "../supervision/signals.ts";
import { supervise } from "../supervision/supervise.ts";
import { Watchdog } from "../supervision/watchdog-link.ts";

const ttlMsDefault = 30_000;
const graceMsDefault = 5_000;
/** How long before the leases' end nothing of the command is left: a tenth of the TTL, within these. */
const marginMsMin = 50;
const marginMsMax = 1_000;
/** A lease that was taken away is not ours to use: little time to tidy up. */
const takenGraceMsMax = 1_000;
const tellMsMax = 500;
const restartsMax = 10_000;

const runCommand: Command = {
  name: "run",
  summary: "runs a command while leases are held: `flock` for fleets",
  usage: "[-x|-s|-p P] RES… [-n|-w TIME] [-E CODE] [--ttl TIME] -- COMMAND [ARGUMENT…]",
  words: [1, 256],
  wraps: true,
  about: `All names are leased together, or none is. The leases are kept alive while the command runs, and released
when it ends; its exit code is passed on, and so are standard input and signals. If the leases are lost, or could be,
because the server cannot be reached, the command and all of its process group are ended before the leases are:
SIGTERM, --grace, SIGKILL; the exit code is then ${exitCodes.leaseLost}. A watchdog process does so even if this one was killed.

With --restart a command that fails is run again under the same leases, after a pause that doubles from 0.5 s to 30 s; its
agent's restart is announced for that time. A \`leasehold run\` or \`acquire\` inside the command does not wait for older work
while the agent holds something: it ends with ${exitCodes.notGranted} (DIE), so that the command can end too. Then all leases are given back
before it is run again.

The command finds in its environment LEASEHOLD_LEASE_IDS (commas between), LEASEHOLD_FENCE (the highest of its fences:
show it to whatever you write to), LEASEHOLD_EXPIRES_AT (as of the start), and LEASEHOLD_AGENT_ID,
LEASEHOLD_AGENT_TOKEN and LEASEHOLD_URL, by which \`leasehold\` within it acts as the same agent. Where a cell hosts what
is leased, LEASEHOLD_COORDINATE says where the first of it is reached. If the agent had to wait, died or had lost a lease, LEASEHOLD_CHANGES is the path of a JSON file with what others changed meanwhile
({"since", "truncated", "changes": [{"resource", "predicate", "agent_id", "at", "version"}]}); it is deleted when the
command ends.`,
  flags: {
    ...manifestFlags,
    any: anyFlag,
    ...waitFlags,
    "conflict-exit-code": {
      short: "E",
      sign: "CODE",
      words: `exit with this where it was not granted [${exitCodes.notGranted}]`,
    },
    ttl: { sign: "TIME", words: "how long the leases outlive a crash of this machine [30s]" },
    grace: { sign: "TIME", words: "between SIGTERM and SIGKILL [5s], at most a quarter of the ttl" },
    restart: { sign: "N", words: "run the command again when it fails, N times at most [0], under the same leases" },
    agent: agentFlag,
    purpose: { sign: "TEXT", words: "why, for those whom it blocks [the command's name]" },
  },
  examples: [
    ["leasehold run --restart 5 QUEUE:/mail -- ./consumer", "started again when it crashes, without losing its turn"],
    ["leasehold run src/auth.ts -- ./rename-login.sh", "no other agent changes that file meanwhile"],
    ["leasehold run -x dist/ -s src/ -- npm run build", "to write one folder, and see no changes in the other"],
    ["leasehold run -n -E 0 DEPLOY:/prod -- ./deploy.sh", "if somebody deploys already, that is fine"],
    ["leasehold run --any 'DB:/shop/*' -- npm test", "with a database of its own, which a cell makes and drops"],
    ["leasehold run -w 10m --units 1 GPU:/rack-1/a100 -- python train.py", "wait for one of four"],
  ],
  run: async (call) => {
    const intents = readChoice(call);
    const [file = "", ...args] = call.wrapped;
    if (call.wrapped.length === 0) throw new UsageProblem("say what to run after --: `leasehold run RES… -- COMMAND`");
    const conflictCode = call.integer("conflict-exit-code", 0, 255) ?? exitCodes.notGranted;
    const ttlMs = call.durationMs("ttl") ?? ttlMsDefault;
    const graceMs = call.durationMs("grace") ?? graceMsDefault;
    const waitMs = waitMsOf(call);
    const purpose = call.text("purpose") ?? basename(file);
    const { PATH = "" } = call.environment;
    const command = findCommand(file, PATH, call.cwd);
    const client = await call.connect();
    const signals = new PassedSignals();
    const acting = await actingAgent(call, client);
    const watchdog = new Watchdog();
    const { out } = call;
    const max = call.integer("restart", 0, restartsMax) ?? 0;
    const restarts = new Restarts({ max, stopped: signals.ending, note: (text) => out.note(text) });
    // Without a key there is nothing to hide from the command, and nothing that runs out.
    const isKeyless = acting.token === null && call.key === null;
    const actor: Actor = isKeyless
      ? { client, ...acting }
      : await AgentToken.draw(client, acting.agentId, acting.token);
    const { isNew } = acting;
    const claim = { intents, ttlMs, waitMs, purpose, givenUp: signals.early, conflictCode, isNew };
    const onceGranted = async (): Promise<number> => {
      const granted = await acquire(actor, claim, out);
      const { answer } = granted;
      for (const warning of answer.warnings) out.note(warning);
      // An agent of its own has read nothing yet: there is nothing to read again.
      if (!acting.isNew) noteChanges(out, answer);
      const changes = new ChangesFile(answer);
      try {
        const { code, lost } = await runUnderLeases(
          actor,
          granted,
          { watchdog, graceMs, restarts, signals },
          (onGroup) =>
            startChild([command, ...args], {
              env: {
                ...withoutKeys(call.environment),
                ...environmentFor(call, actor, answer),
                LEASEHOLD_CHANGES: changes.path,
              },
              stdin: "inherit",
              stdout: "inherit",
              onGroup: (group) => {
                onGroup(group);
                signals.to(group);
              },
            }),
        );
        if (lost === null) return code;
        await lookUpHolders(actor, lost).catch(() => undefined);
        throw new Failure(`${lost.message.replace(/^lease_lost: /, "")} The command was stopped.`, exitCodes.leaseLost);
      } finally {
        changes.delete();
        await letGo(call, actor, answer);
      }
    };
    try {
      let code = await onceGranted();
      while (Restarts.isRollBack(code) && (await restarts.again(code))) code = await onceGranted();
      return code;
    } finally {
      watchdog.dismiss();
      signals.stop();
    }
  },
};

interface Supervision {
  readonly watchdog: Watchdog;
  readonly graceMs: number;
  readonly restarts: Restarts;
  readonly signals: PassedSignals;
}

/** The exit code, and why the command was stopped; null where it came to its own end. */
async function runUnderLeases(
  actor: Actor,
  granted: Timed<Granted>,
  { watchdog, graceMs, restarts, signals }: Supervision,
  start: (onGroup: (group: number) => void) => Promise<Child>,
): Promise<{ readonly code: number; readonly lost: LeaseLost | null }> {
  const ttlMs = Math.min(...granted.answer.leases.map(({ ttl }) => ttl));
  const marginMs = Math.min(Math.max(ttlMs / 10, marginMsMin), marginMsMax);
  const graceFittingMs = Math.min(graceMs, ttlMs / 4);
  const takenGraceMs = Math.min(graceFittingMs, takenGraceMsMax);
  // The signal fires early enough for the grace; ends are watched for from the start.
  const holding = new Holding(actor, granted, { marginMs: marginMs + graceFittingMs }, 0);
  const isTaken = (): boolean => holding.lost !== null && holding.lost.reason !== "no_contact";
  try {
    await holding.begin();
    for (;;) {
      holding.assertHeld();
      const { code } = await supervise({
        watchdog,
        signal: holding.signal,
        limits: () => ({ termInMs: holding.remainingMs(), graceMs: isTaken() ? takenGraceMs : graceFittingMs }),
        everyMs: Math.min(tellMsMax, ttlMs / 10),
        start,
      });
      signals.to(0);
      watchdog.tell(0, 0, 0, false);
      if (holding.lost !== null || Restarts.isRollBack(code)) return { code, lost: holding.lost };
      const mayAgain =
        restarts.isLeft(code) && (await restarts.announced(actor, () => restarts.again(code, holding.signal)));
      if (!mayAgain) return { code, lost: holding.lost };
    }
  } finally {
    holding.finish();
  }
}

function environmentFor({ address }: Call, { agentId, token }: Actor, { leases }: Granted): NodeJS.ProcessEnv {
  const ends = leases.map((lease) => lease.expires_at).toSorted();
  return {
    LEASEHOLD_LEASE_IDS: leases.map(({ id }) => id).join(","),
    LEASEHOLD_FENCE: String(Math.max(...leases.map(({ fence }) => fence))),
    LEASEHOLD_EXPIRES_AT: ends[0] ?? "",
    // Undefined where there is none: then that of an outer command is not passed on either.
    LEASEHOLD_COORDINATE: leases.find(({ coordinate }) => coordinate !== undefined)?.coordinate,
    LEASEHOLD_AGENT_ID: agentId,
    ...(token !== null && { LEASEHOLD_AGENT_TOKEN: token }),
    ...addressEnvironment(address),
  };
}

/** A4: for the command to read, and for nobody else. */
class ChangesFile {
  /** Undefined where there is nothing to tell: then an outer command's file is not passed on either. */
  readonly path: string | undefined;
  private readonly folder: string | null = null;

  constructor({ observation_update: update }: Granted) {
    if (update === undefined) return;
    this.folder = mkdtempSync(join(tmpdir(), "leasehold-changes-"));
    this.path = join(this.folder, "changes.json");
    writeFileSync(this.path, `${JSON.stringify(update)}\n`, { mode: 0o600 });
  }

  delete(): void {
    if (this.folder !== null) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** In every case the leases are not needed any more. If the server cannot be reached, they run out. */
async function letGo(call: Call, { client, agentId, token }: Actor, { leases }: Granted) {
  const asked = { agent_id: agentId, lease_ids: leases.map(({ id }) => id) };
  try {
    await client.call("release_all", asked, { timeoutMs: 3_000, retries: 2, token });
  } catch (error) {
    const why = isServerError(error) ? error.code : String(error);
    if (why !== "stale_epoch") call.out.note(`the leases could not be released (${why}); they end by themselves`);
  }
}

export const commands: readonly Command[] = [runCommand];
