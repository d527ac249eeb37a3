/** A rate that callers share (G15): a command that runs when a unit is free. */
import { acquire, collect, waitFlags, waitMsOf } from "../acquiring.ts";
import { register } from "../acting.ts";
import type { Call, Command } from "../command.ts";
import { readDurationMs, showDuration } from "../durations.ts";
import { isServerError, UsageProblem } from "../problem.ts";
import { startChild } from "../supervision/child.ts";
import { findCommand } from "../supervision/find-command.ts";
import { PassedSignals } from "../supervision/signals.ts";

/** The unit is spent with the grant: the lease only has to last until its answer is here. */
const ttlMs = 10_000;
/** G15: the shortest time in which units come back. */
const refillMsMin = 100;

export const commands: readonly Command[] = [
  {
    name: "limit",
    summary: "takes a unit of a shared rate, and then runs a command",
    usage: "NAME [--rate N/TIME] [--units N] [-n|-w TIME] [-- COMMAND [ARGUMENT…]]",
    wraps: true,
    about: `NAME is that of the limit, \`openai\` for LIMIT:/openai. Of all callers together at most N units are granted
within any span of that time: a strict window, without bursts beyond it. A unit comes back with time, and not when the
command ends. Without a command it waits for a unit, takes it and ends.

The first call with --rate declares the limit, and one with another rate changes it for all; that takes the key of a
supervisor or operator where the server has keys. Without --rate the limit is as it was declared.`,
    flags: {
      rate: { sign: "N/TIME", words: "how many units in which time: 60/m, 5/s, 1000/h, 10/30s" },
      units: { sign: "N", words: "units to take [1]", min: 1 },
      ...waitFlags,
    },
    examples: [
      ["leasehold limit openai --rate 60/m -- ./ask-model.sh", "60 calls a minute, of all agents together"],
      ["leasehold limit github --rate 5000/h && gh api user", "waits until one is free"],
      ["leasehold limit -n openai --units 20", "are 20 free right now? (exit code 107: no)"],
    ],
    run: async (call) => {
      const resource = limitName(call.word);
      const rate = rateOf(call.text("rate"));
      const units = call.integer("units", 1) ?? 1;
      const [file = "", ...args] = call.wrapped;
      const { PATH = "" } = call.environment;
      const command = call.wrapped.length === 0 ? null : [findCommand(file, PATH, call.cwd), ...args];
      if (rate !== null) await declare(call, resource, rate);
      const signals = new PassedSignals();
      try {
        await takeUnits(call, resource, units, signals.early);
        if (command === null) {
          call.out.show({ resource, units }, () => `took ${units === 1 ? "a unit" : `${units} units`} of ${resource}`);
          return 0;
        }
        const env = { ...call.environment };
        const child = await startChild(command, {
          env,
          stdin: "inherit",
          stdout: "inherit",
          onGroup: (group) => signals.to(group),
        });
        return await child.ended;
      } finally {
        signals.stop();
      }
    },
  },
];

interface Rate {
  readonly capacity: number;
  readonly refillMs: number;
}

function limitName(word: string): string {
  if (/^[A-Z][A-Z0-9_]*:\//.test(word)) return word;
  if (/^[\w.-]+(\/[\w.-]+)*$/.test(word)) return `LIMIT:/${word}`;
  throw new UsageProblem("name the limit: `leasehold limit openai --rate 60/m`");
}

const perUnit: Readonly<Record<string, string>> = { ms: "1ms", s: "1s", m: "1m", h: "1h", d: "1d" };

/** "60/m", "10/30s". */
export function rateOf(text: string | null): Rate | null {
  if (text === null) return null;
  const [, count = "", per = ""] = /^(\d{1,10})\/([\w.]+)$/.exec(text) ?? [];
  const refillMs = readDurationMs(perUnit[per] ?? per);
  const capacity = Number(count);
  if (capacity >= 1 && refillMs !== null && refillMs >= refillMsMin) return { capacity, refillMs };
  throw new UsageProblem(`--rate ${text} is not a rate; give units and a time of 100ms or more: 60/m, 5/s, 10/30s`);
}

/** Where it is declared so already, nothing is asked of a key that may not. */
async function declare(call: Call, resource: string, { capacity, refillMs }: Rate): Promise<void> {
  const { resources } = await call.ask("list_resources", { prefix: resource });
  const known = resources.find((one) => one.resource === resource);
  if (known?.capacity === capacity && known.refill_ms === refillMs) return;
  try {
    await call.ask("declare_resource", { resource, capacity, refill_ms: refillMs });
  } catch (error) {
    if (!isServerError(error) || error.code !== "forbidden") throw error;
    const is =
      known === undefined || known.capacity === null || known.refill_ms === null
        ? "it is not declared"
        : `it is ${known.capacity} in ${showDuration(known.refill_ms)}`;
    throw new UsageProblem(
      `this key may not set the rate of ${resource}, and ${is}: leave --rate out, or ask an operator for it`,
    );
  }
}

/** As an agent of its own, which holds nothing and may stand by (W14). What it took stays spent when the agent ends. */
async function takeUnits(call: Call, resource: string, units: number, givenUp: AbortSignal): Promise<void> {
  const client = await call.connect();
  const acting = await register(client, null);
  const actor = { client, ...acting };
  const intents = [{ predicate: "CONSUMES", resource, units }] as const;
  const claim = { intents, ttlMs, waitMs: waitMsOf(call), purpose: "a unit of a limit", givenUp, isNew: true };
  const { answer } = await acquire(actor, claim, call.out);
  await collect(actor, answer);
  const ended = { agent_id: acting.agentId, to: "ABORTED" } as const;
  await client.call("transition_agent", ended, acting.token === null ? {} : { token: acting.token });
}
