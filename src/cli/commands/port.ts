/** A free port for a worktree: leased for this machine, and tried by binding it. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { hostname } from "node:os";
import type { Lease } from "../../sdk/wire.ts";
import { acquire, collect } from "../acquiring.ts";
import type { Call, Command, Flags } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { Failure, UsageProblem } from "../problem.ts";
import { repositoryAt } from "../resource-names.ts";
import { type SharedAgent, sharedAgent } from "../session-agent.ts";
import { untilStopped } from "../stop-signals.ts";
import { commands as runCommands } from "./run.ts";

const rangeDefault = "20000-29999";
const ttlMs = 90_000;

const flags: Flags = { range: { sign: "FROM-TO", words: `ports to choose from [${rangeDefault}]` } };

export const commands: readonly Command[] = [
  {
    name: "port",
    summary: "finds a free port for this worktree, and keeps it",
    usage: "[NAME] [--range FROM-TO] [-- COMMAND [ARGUMENT…]]",
    words: [0, 1],
    wraps: true,
    about: `A port is free if nobody has a lease on PORT:/<this machine>/<number> and it can be bound. With a command it
is leased while the command runs, which finds it in PORT. Without one it belongs to the coding session that this was started
in, and ends with it or with \`leasehold port release\`; asked again, the same port is printed. The search begins at a port
that follows from the worktree's folder and NAME, so a worktree mostly gets the same one.`,
    flags,
    examples: [
      ["leasehold port -- npm run dev", "with PORT in its environment"],
      ["leasehold port api --range 3000-3999", "within a coding session: prints one"],
    ],
    run: async (call) => {
      const candidates = candidatesFor(call);
      return call.wrapped.length > 0 ? runWithPort(call, candidates) : keepForSession(call, candidates);
    },
  },
  {
    name: "port release",
    summary: "gives back the ports of this coding session",
    examples: [["leasehold port release", "they are free again"]],
    run: async (call) => {
      const { agentId, token } = await sessionOf(call);
      const ports = (await leasesOf(call, agentId)).filter(isPort);
      const asked = { agent_id: agentId, lease_ids: ports.map(({ id }) => id) };
      if (ports.length > 0) await call.ask("release_all", asked, { token });
      call.out.show({ released: ports.map(portOf) }, () =>
        ports.length === 0 ? "There was nothing to give back." : `gave back ${ports.map(portOf).join(", ")}`,
      );
    },
  },
];

const prefix = `PORT:/${hostname().replace(/[^\w.-]/g, "-")}/`;
const isPort = ({ resource }: Lease): boolean => resource.startsWith(prefix);
const portOf = ({ resource }: Lease): number => Number(resource.slice(prefix.length));
const purposeOf = (call: Call): string => `port ${call.word || "of"} ${worktreeOf(call)}`;
const worktreeOf = ({ cwd }: Call): string => repositoryAt(cwd)?.root ?? cwd;

/** All ports of the range, from the one that the worktree's folder and the name lead to. */
function candidatesFor(call: Call): number[] {
  const range = call.text("range") ?? rangeDefault;
  const [, from = "", to = ""] = /^(\d{1,5})-(\d{1,5})$/.exec(range) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (from === "" || first < 1 || last > 65_535 || first > last) {
    throw new UsageProblem(`--range ${range} is not a range of ports; give the first and the last: 3000-3999`);
  }
  const count = last - first + 1;
  const start = createHash("sha256").update(purposeOf(call)).digest().readUInt32BE() % count;
  return Array.from({ length: count }, (_, at) => first + ((start + at) % count));
}

/** Whether it can be bound now, on all addresses and on loopback. */
async function isBindable(port: number): Promise<boolean> {
  for (const host of [undefined, "127.0.0.1"]) {
    const server = createServer();
    try {
      server.listen({ port, host });
      await once(server, "listening");
    } catch {
      return false;
    } finally {
      server.close();
    }
  }
  return true;
}

async function firstFree<T>(candidates: readonly number[], take: (port: number) => Promise<T>): Promise<T> {
  for (const port of candidates) {
    if (!(await isBindable(port))) continue;
    try {
      return await take(port);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== exitCodes.notGranted) throw error;
    }
  }
  throw new Failure("every port of the range is taken; give another --range", exitCodes.notGranted);
}

/** As `leasehold run` on the port's name, which keeps the lease while the command runs and ends both together. */
function runWithPort(call: Call, candidates: readonly number[]): Promise<number | undefined> {
  const [run] = runCommands;
  if (run === undefined) throw new TypeError("there is a command to run commands with");
  return firstFree(candidates, (port) => {
    const resource = `${prefix}${port}`;
    return run.run({
      ...call,
      words: [resource],
      word: resource,
      tokens: [{ kind: "word", text: resource }],
      environment: { ...call.environment, PORT: String(port) },
      isSet: (flag) => flag === "nonblock",
      text: () => null,
      texts: () => [],
      durationMs: () => null,
      integer: () => null,
    });
  });
}

async function keepForSession(call: Call, candidates: readonly number[]): Promise<undefined> {
  const client = await call.connect();
  const session = await sessionOf(call);
  const purpose = purposeOf(call);
  const known = (await leasesOf(call, session.agentId)).find((lease) => isPort(lease) && lease.purpose === purpose);
  const port = known === undefined ? await firstFree(candidates, (one) => lease(one)) : portOf(known);
  call.out.show({ port }, () => String(port));
  return undefined;

  async function lease(one: number): Promise<number> {
    const actor = { client, agentId: session.agentId, token: session.token };
    const intents = [{ predicate: "MUTATES", resource: `${prefix}${one}` }] as const;
    const claim = { intents, ttlMs, waitMs: 0, purpose, isNew: false };
    const { answer } = await untilStopped((givenUp) => acquire(actor, { ...claim, givenUp }, call.out));
    await collect(actor, answer);
    session.alive();
    return one;
  }
}

/** Its guard's helper renews what the session's agent holds, and gives it back when the session has ended. */
async function sessionOf(call: Call): Promise<SharedAgent> {
  const session = await sharedAgent(call);
  if (session !== null) return session;
  throw new UsageProblem(
    "outside of a guarded coding session nothing would keep a port: say what uses it, `leasehold port -- COMMAND`",
  );
}

async function leasesOf(call: Call, agentId: string): Promise<readonly Lease[]> {
  return (await call.ask("list_leases", { agent_id: agentId })).leases;
}
