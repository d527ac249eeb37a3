/**
 * Plays moves on the kernel and on the oracle, and compares after each: the reply, the leases with holder and expiry,
 * the queue, and every agent's state. The first difference is thrown with the transcript.
 */

import type { Command } from "../src/kernel/contract/commands.ts";
import type { RecordOf } from "../src/kernel/contract/records.ts";
import type { Observation, Reply } from "../src/kernel/contract/replies.ts";
import { apply, createState, nextDeadline, type State } from "../src/kernel/kernel.ts";
import { TestHistory } from "../src/kernel/testing/test-history.ts";
import { kernelView, modelView, onlyTenant, recordsOf } from "./lockstep-views.ts";
import { changeText } from "./model/observing.ts";
import { createModel, type Model, nextDeadlineOf, type Prediction, predict } from "./model.ts";
import { type Board, commandFor, type Move, opening, type Targets } from "./moves.ts";

const beginning = 1_700_000_000_000;

interface Lockstep {
  readonly kernel: State;
  readonly model: Model;
  readonly history: TestHistory;
  now: number;
  /** Maps the kernel's ids to the oracle's, and back. */
  readonly modelIdOf: Map<string, string>;
  readonly kernelIdOf: Map<string, string>;
  fenceMax: number;
  readonly transcript: string[];
}

export function playInLockstep(board: Board, moves: readonly Move[]): void {
  const game: Lockstep = {
    kernel: createState(),
    model: createModel(),
    history: new TestHistory(),
    now: beginning,
    modelIdOf: new Map(),
    kernelIdOf: new Map(),
    fenceMax: 0,
    transcript: [],
  };
  for (const command of opening(board)) step(game, command);
  let drawn = 0;
  for (const move of moves) {
    game.now = timeAfter(game, move);
    drawn++;
    step(game, commandFor(move, board, targetsOf(game.model), [drawn, (drawn * 2_654_435_761) % 2 ** 32]));
  }
}

function timeAfter(game: Lockstep, { clock }: Move): number {
  if (clock.type === "by") return game.now + clock.ms;
  const deadline = nextDeadlineOf(game.model);
  // Far deadlines (agents are forgotten after a week) are left to the long jumps: without agents nothing conflicts.
  return deadline - game.now < 900_000 ? Math.max(game.now, deadline + clock.off) : game.now;
}

/** Live leases and requests, and the ended ones that the oracle still remembers, for late commands. */
function targetsOf(model: Model): Targets {
  const tenant = onlyTenant(model);
  const requests = [...tenant.requests].sort((a, b) => a.arrival - b.arrival);
  const leases = [...tenant.leases].sort((a, b) => (a.id < b.id ? -1 : 1));
  const late = requests
    .filter((request) => request.forgetAt !== null && request.state === "GRANTED")
    .slice(-2)
    .map((request) => ({ id: `${request.id}.0`, agentId: request.agentId, generation: 1 }));
  return {
    leases: [...leases, ...late],
    requests,
    epochOf: (agentId) => tenant.agents.find((agent) => agent.id === agentId)?.epoch ?? 1,
  };
}

function step(game: Lockstep, asked: Command): void {
  game.transcript.push(`${game.now - beginning}: ${JSON.stringify(asked)}`);
  const expected = predict(game.model, asked, game.now);
  const reply = answer(game, translated(asked, game.kernelIdOf));
  const records = recordsOf(game.kernel);
  matchIds(game, expected, reply, records.request);
  game.transcript.push(`    → ${JSON.stringify(answered(game, reply))}`);
  same(game, "the answer", predicted(expected, reply), answered(game, reply));
  same(game, "the live state", modelView(game.model), kernelView(records, game.modelIdOf, game.fenceMax));
  game.fenceMax = Math.max(game.fenceMax, ...records.lease.map((lease) => lease.fence));
  const due = nextDeadline(game.kernel);
  if (due > nextDeadlineOf(game.model))
    fail(game, `nextDeadline is ${due}, but ${nextDeadlineOf(game.model)} comes first`);
}

/** As an engine asks: a key that memory does not know is looked up in the store (W10). */
function answer({ kernel, history, now }: Lockstep, command: Command): Reply {
  const decide = (one: Command): Reply => {
    const { reply, changes } = apply(kernel, one, now);
    history.take(changes, now);
    return reply;
  };
  const reply = decide(command);
  if (reply.type !== "request_key_unknown") return reply;
  return history.complete(command, reply, now) ?? decide({ ...command, keyLookedUp: true } as Command);
}

/** A request's id comes with the reply; its leases are listed in its record in the manifest's order. */
function matchIds(game: Lockstep, expected: Prediction, reply: Reply, requests: readonly RecordOf["request"][]): void {
  const match = (modelId: string, kernelId: string) => {
    game.modelIdOf.set(kernelId, modelId);
    game.kernelIdOf.set(modelId, kernelId);
  };
  const known = onlyTenant(game.model).requests;
  if ("requestId" in reply && expected.requestId !== undefined && known.some((one) => one.id === expected.requestId)) {
    if (!game.kernelIdOf.has(expected.requestId)) match(expected.requestId, reply.requestId);
  }
  const isDry = "requestId" in reply && reply.requestId === "";
  if (reply.type === "granted" && expected.leaseIds !== undefined && !isDry) {
    for (const [index, { id }] of reply.leases.entries()) {
      const modelId = expected.leaseIds[index];
      if (modelId !== undefined && !game.modelIdOf.has(id)) match(modelId, id);
    }
  }
  for (const request of requests) {
    const modelId = game.modelIdOf.get(request.id);
    if (modelId === undefined) continue;
    for (const [index, leaseId] of request.leaseIds.entries()) match(`${modelId}.${index}`, leaseId);
  }
}

function translated(command: Command, ids: ReadonlyMap<string, string>): Command {
  return JSON.parse(JSON.stringify(command), (_key, value) =>
    typeof value === "string" ? (ids.get(value) ?? value) : value,
  );
}

function predicted(expected: Prediction, reply: Reply): unknown {
  if ("requestId" in reply && reply.requestId === "") return { type: expected.type };
  const { blockers, changes: _, ...rest } = expected;
  if (reply.type === "paused" && rest.code?.split(" or ").includes(reply.reason))
    return { ...rest, code: reply.reason };
  // Which 16 of more blockers are listed is not specified.
  const listed = blockers !== undefined && "blockers" in reply && (reply.blockersTotal ?? 0) <= 16;
  return listed ? { ...rest, blockers: [...blockers].sort() } : rest;
}

function answered(game: Lockstep, reply: Reply): Record<string, unknown> {
  const id = (kernelId: string) => game.modelIdOf.get(kernelId) ?? kernelId;
  const blockers = () => {
    if (!("blockers" in reply) || reply.blockers === undefined || (reply.blockersTotal ?? 0) > 16) return {};
    const ids = reply.blockers.map((one) => id(one.leaseId ?? one.requestId ?? ""));
    return { blockers: [...new Set(ids)].sort() };
  };
  if ("requestId" in reply && reply.requestId === "") return { type: reply.type };
  switch (reply.type) {
    case "granted":
      return {
        type: reply.type,
        requestId: id(reply.requestId),
        leaseIds: reply.leases.map((lease) => id(lease.id)),
        ...told(reply.observation),
      };
    case "waiting":
      return { type: reply.type, requestId: id(reply.requestId), position: reply.position, ...blockers() };
    case "standby":
      return { type: reply.type, requestId: id(reply.requestId), ...blockers() };
    case "died":
      return { type: reply.type, ...blockers() };
    case "paused":
      return { type: reply.type, code: reply.reason };
    case "refused":
      return {
        type: reply.type,
        code: reply.code,
        ...(reply.reason === undefined ? {} : { reason: reply.reason }),
        ...blockers(),
      };
    case "lease":
      return { type: reply.type, leaseIds: [id(reply.lease.id)], ...told(reply.observation) };
    case "agent":
    case "leases":
      return { type: reply.type, ...told(reply.observation) };
    case "resumed": {
      const assumptions = reply.assumptions.map(({ outcome }) => outcome);
      return { type: reply.type, ...told(reply.observation), assumptions };
    }
    case "revoked":
      return { type: reply.type, count: reply.count };
    default:
      return { type: reply.type };
  }
}

function told(observation: Observation | null | undefined): object {
  if (observation == null) return {};
  const { since, changes } = observation;
  return { observation: { since, changes: changes.map(changeText) } };
}

function same(game: Lockstep, what: string, oracle: unknown, kernel: unknown): void {
  const [expected, got] = [JSON.stringify(oracle, null, 1), JSON.stringify(kernel, null, 1)];
  if (expected === got) return;
  const [before, after] = [expected.split("\n"), got.split("\n")];
  const isOrder = before.every((line) => after.includes(line)) && after.every((line) => before.includes(line));
  const only = (lines: string[], others: string[]) =>
    lines.filter((line) => isOrder || !others.includes(line)).join("\n");
  fail(game, `${what} differs\noracle:\n${only(before, after)}\nkernel:\n${only(after, before)}`);
}

function fail(game: Lockstep, sentence: string): never {
  throw new Error(`${sentence}\n\ntranscript (ms since the beginning):\n${game.transcript.join("\n")}`);
}
