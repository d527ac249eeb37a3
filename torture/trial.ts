/**
 * Agents, what they were told, and what the events tell, on one data folder and one port, whatever becomes of the
 * server there. Whoever breaks the server asks here, when it serves again, whether it kept its word.
 */
import { freePort } from "../bench/children.ts";
import { createRandom, type Random } from "../sim/random.ts";
import { startClients } from "./clients.ts";
import { checkOverlaps, compareHistory } from "./compare-history.ts";
import { type Connection, connectHttp } from "./connections.ts";
import { followEvents } from "./follow.ts";
import { createHistory, type ToldHistory, wantedTypes } from "./history.ts";
import { applyJournal, createModel, heldByAgent, type Model, type Tally } from "./model.ts";
import { repeatAcknowledged, settlePending } from "./repeat.ts";
import { verifyHoldings, verifyLeases } from "./verify.ts";
import { createViolations, type Violation, type Violations } from "./violations.ts";

export interface TrialOptions {
  readonly agents: number;
  readonly seed: number;
}

/** What was seen so far. */
export interface Findings {
  /** Looks at a lease, and how many of those were alive. */
  verified: number;
  alive: number;
  /** Extensions and releases without an answer: how many were stored, and how many not. */
  stored: number;
  notStored: number;
  repeated: number;
  settled: number;
  events: number;
  reconnects: number;
  readonly tally: Tally;
  readonly violations: readonly Violation[];
}

export interface Trial {
  readonly port: number;
  readonly random: Random;
  readonly findings: Findings;
  readonly violations: Violations;
  /** Once, when the server serves for the first time. */
  register(): Promise<void>;
  /** Lets the agents loose. */
  begin(): void;
  /** Agents end when their connections break; `stop` asks them to. What they were told is noted. */
  end(how: "stop" | "broken"): Promise<void>;
  /** Holds the server to its word, while nobody else talks to it. */
  verify(): Promise<void>;
  close(): Promise<void>;
}

const clientThreads = 2;
const eventsLateMsMax = 10_000;
const endedCheckedAgain = 200;

export async function startTrial({ agents, seed }: TrialOptions): Promise<Trial> {
  const random = createRandom(seed);
  const violations = createViolations();
  const model = createModel();
  const history = createHistory(violations);
  const findings = createFindings(model.tally, violations);
  const port = await freePort();
  const agentIds = Array.from({ length: agents }, (_, index) => `agent-${index}`);
  const clients = Array.from({ length: clientThreads }, (_, thread) =>
    startClients({ agentIds: agentIds.filter((_id, index) => index % clientThreads === thread), seed: seed + thread }),
  );
  const told: number[] = [];
  const followers = [
    followEvents(port, "", (seq, event) => history.take(seq, event)),
    followEvents(port, `&types=${wantedTypes.join(",")}`, (seq) => told.push(seq)),
  ];
  let marks = 0;

  async function verify(connection: Connection): Promise<void> {
    const { leases, alive, stored, notStored } = await verifyLeases(model, connection, violations);
    findings.verified += leases;
    findings.alive += alive;
    findings.stored += stored;
    findings.notStored += notStored;
    await settlePending(model, connection, violations, findings);
    await repeatAcknowledged(model, connection, random, violations, findings);
    await verifyHoldings(model, agentIds, connection, violations);
    await untilTold(connection);
    compareHistory(model, history, violations);
    checkOverlaps(model, history, violations);
    for (const { refusal } of followers) {
      if (refusal !== null) violations.add("S1", "the events could not be resumed", { refusal });
    }
    findings.events = history.count;
    findings.reconnects = followers.reduce((sum, { connects }) => sum + connects - 1, 0);
  }

  /** A last event: when it has come, so must all before it have. */
  async function untilTold(connection: Connection): Promise<void> {
    const mark = `mark-${++marks}`;
    await connection.call("register_agent", { agent_id: mark });
    const began = performance.now();
    while (!history.agents.has(mark) || told.length < history.wanted.length) {
      if (performance.now() - began > eventsLateMsMax) {
        const evidence = { mark, all: history.lastSeq, some: told.at(-1), wanted: history.wanted.at(-1) };
        return violations.add("S1", "events do not come any more", evidence);
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const wrong = history.wanted.findIndex((seq, index) => seq !== told[index]);
    if (wrong >= 0 || told.length !== history.wanted.length) {
      const evidence = { told: told.slice(wrong, wrong + 5), wanted: history.wanted.slice(wrong, wrong + 5) };
      violations.add("S1", "a follower of some types was told others, or not all", evidence);
    }
    told.length = 0;
    history.wanted.length = 0;
  }

  return {
    port,
    random,
    findings,
    violations,
    async register() {
      const connection = connectHttp(port);
      for (const agentId of agentIds) await connection.call("register_agent", { agent_id: agentId });
      connection.close();
    },
    begin() {
      const held = heldByAgent(model);
      forget(model, history, random);
      for (const group of clients) group.go(port, held);
    },
    async end(how) {
      if (how === "stop") for (const group of clients) group.stop();
      for (const group of clients) applyJournal(model, await group.journals(), violations);
    },
    async verify() {
      const connection = connectHttp(port);
      try {
        await verify(connection);
      } finally {
        connection.close();
      }
    },
    async close() {
      for (const follower of followers) follower.stop();
      await Promise.all(clients.map((group) => group.close()));
    },
  };
}

function createFindings(tally: Tally, { found }: Violations): Findings {
  const none = { verified: 0, alive: 0, stored: 0, notStored: 0, repeated: 0, settled: 0, events: 0, reconnects: 0 };
  return { ...none, tally, violations: found };
}

/** What has ended is final; a few of them are kept, to see that it stays so through later deaths (L12, L16). */
function forget({ leases }: Model, history: ToldHistory, random: Random): void {
  const ended = [...leases.values()].filter(({ end }) => end !== null);
  for (const known of ended) {
    if (random.below(ended.length) >= endedCheckedAgain) leases.delete(known.id);
    else known.isOld = true;
  }
  history.forgetEnded((id) => leases.has(id));
}
