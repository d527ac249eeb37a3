/**
 * Agents, the replies that they got, and the events, on one data folder and one port, across restarts of the server.
 * After each fault the caller asks here whether every acknowledgement was kept.
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

/** The findings so far. */
export interface Findings {
  /** Checks of a lease, and how many of those leases were live. */
  verified: number;
  alive: number;
  /** Extensions and releases without a reply: how many were stored, and how many not. */
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
  /** Called once, when the server first serves. */
  register(): Promise<void>;
  /** Starts the agents. */
  begin(): void;
  /** Resolves when the agents have ended: when their connections broke, or after `stop`. Their journals are kept. */
  end(how: "stop" | "broken"): Promise<void>;
  /** Checks every acknowledgement, while no other client is connected. */
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
  const delivered: number[] = [];
  const followers = [
    followEvents(port, "", (seq, event) => history.take(seq, event)),
    followEvents(port, `&types=${wantedTypes.join(",")}`, (seq) => delivered.push(seq)),
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

  /** A last event: once it has arrived, so must all earlier ones have. */
  async function untilTold(connection: Connection): Promise<void> {
    const mark = `mark-${++marks}`;
    await connection.call("register_agent", { agent_id: mark });
    const began = performance.now();
    while (!history.agents.has(mark) || delivered.length < history.wanted.length) {
      if (performance.now() - began > eventsLateMsMax) {
        const evidence = { mark, all: history.lastSeq, some: delivered.at(-1), wanted: history.wanted.at(-1) };
        return violations.add("S1", "events stopped arriving", evidence);
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const wrong = history.wanted.findIndex((seq, index) => seq !== delivered[index]);
    if (wrong >= 0 || delivered.length !== history.wanted.length) {
      const evidence = { delivered: delivered.slice(wrong, wrong + 5), wanted: history.wanted.slice(wrong, wrong + 5) };
      violations.add("S1", "a filtered follower got other events, or not all", evidence);
    }
    delivered.length = 0;
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

/** Ended is final; a few ended leases are kept, to check that they stay so after later kills (L12, L16). */
function forget({ leases }: Model, history: ToldHistory, random: Random): void {
  const ended = [...leases.values()].filter(({ end }) => end !== null);
  for (const known of ended) {
    if (random.below(ended.length) >= endedCheckedAgain) leases.delete(known.id);
    else known.isOld = true;
  }
  history.forgetEnded((id) => leases.has(id));
}
