/**
 * What policies cost (S4): acquire + release through the kernel by an agent's key, without any policy, with the built-in one,
 * and with three more. In turns, in one process, by processor time; medians of the rounds.
 *
 *   npm run bench:policies [-- --rounds 21 --cycles 20000]
 */
import { parseArgs } from "node:util";
import type { Acquire, Actor, Command, SetPolicy } from "../src/kernel/contract/commands.ts";
import { defaultPolicyId, ruleDefault } from "../src/kernel/contract/policy-records.ts";
import { apply, createState, type State } from "../src/kernel/kernel.ts";
import { format } from "./children.ts";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "21" }, cycles: { type: "string", default: "20000" } },
});
const rounds = Number(values.rounds);
const cycles = Number(values.cycles);
const warmUps = 3;
const tenant = "bench";
const start = 1_800_000_000_000;
const operator: Actor = { role: "operator", agentId: null, epoch: null };
const agent: Actor = { role: "agent", agentId: "a", epoch: 1 };
const releaseEntropy = [0, 0] as const;

type Rules = SetPolicy["policy"]["rules"];
const rule = (change: Partial<Rules[number]>): Rules[number] => ({
  ...ruleDefault,
  effect: "allow",
  actions: ["lease"],
  ...change,
});

/** What a careful operator sets: where agents may work, what none of them touches, and what they may only read. */
const careful: Readonly<Record<string, Rules>> = {
  work: [rule({ resources: ["FILE:/shop/**", "DB:/test/**"] })],
  secrets: [rule({ effect: "deny", resources: ["FILE:/shop/secrets/**", "FILE:/**/.env"] })],
  migrations: [rule({ effect: "deny", resources: ["FILE:/shop/migrations/**"], predicates: ["MUTATES", "DELETES"] })],
};
/** In the place of the built-in policy: nothing applies. */
const none: Readonly<Record<string, Rules>> = { [defaultPolicyId]: [] };

interface Contender {
  readonly name: string;
  readonly state: State;
  readonly ns: number[];
}

function contender(name: string, policies: Readonly<Record<string, Rules>>): Contender {
  const state = createState();
  const by = { tenant, actor: operator, entropy: [1, 2] as const };
  const set = (command: Command): void => {
    const { reply } = apply(state, command, start);
    if (reply.type === "refused") throw new Error(`${name}: ${command.type}: ${JSON.stringify(reply)}`);
  };
  set({ ...by, type: "create_tenant", tenantId: tenant });
  set({ ...by, type: "register_agent", agentId: "a", labels: null });
  for (const [policyId, rules] of Object.entries(policies)) {
    set({
      ...by,
      type: "set_policy",
      policyId,
      policy: { description: null, tenants: [], roles: [], keyIds: [], rules },
    });
  }
  return { name, state, ns: [] };
}

let made = 0;

function acquireCommand(): Acquire {
  const resource = `FILE:/shop/src/d${made % 97}/m${made % 13}/f${made++ % 100_000}.ts`;
  const times = { ttlMs: 60_000, waitTimeoutMs: 0, standbyMs: 0, idleTimeoutMs: null };
  const rest = { purpose: null, tokens: false, dryRun: false, requestKey: null };
  const intents = [{ predicate: "MUTATES", resource }];
  return { ...times, ...rest, type: "acquire", tenant, actor: agent, entropy: [made, made * 7], agentId: "a", intents };
}

function round({ state, ns }: Contender): void {
  const commands = Array.from({ length: cycles }, acquireCommand);
  const { user: before } = process.threadCpuUsage();
  for (const command of commands) {
    const { reply } = apply(state, command, start);
    if (reply.type !== "granted") throw new Error(`not granted: ${JSON.stringify(reply)}`);
    const leaseId = reply.leases[0]?.id ?? "";
    apply(
      state,
      { type: "release_lease", tenant, actor: agent, entropy: releaseEntropy, leaseId, version: null },
      start,
    );
  }
  ns.push(((process.threadCpuUsage().user - before) * 1_000) / cycles);
}

const contenders = [
  contender("no policy", none),
  contender("the built-in policy", {}),
  contender("three more policies", careful),
];
for (let count = 0; count < warmUps + rounds; count++) {
  // Each comes first as often as the others.
  for (const at of contenders.keys()) {
    const one = contenders[(at + count) % contenders.length];
    if (one !== undefined) round(one);
  }
}
const medians = contenders.map(({ ns }) => ns.slice(warmUps).toSorted((a, b) => a - b)[rounds >> 1] ?? 0);
const [least = 0] = medians;
for (const [index, { name }] of contenders.entries()) {
  const ns = medians[index] ?? 0;
  console.log(`  ${name.padEnd(24)}${format(ns).padStart(8)} ns a cycle   ${(ns / least).toFixed(3)} of none`);
}
