import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { check_spec_with_cfg, initSync } from "tla-checker";

/** Checks spec/leader.tla in all states of a few small models, and that each planted fault is found. */

type Constants = Readonly<Record<string, string | number>>;
type Result = {
  readonly success: boolean;
  readonly error_type: string | null;
  readonly error_message: string | null;
  readonly states_explored: number;
  readonly trace: readonly string[] | null;
};
type Model = keyof typeof models;

/** More than the largest model has; a model that outgrows it fails. */
const statesMax = 50_000;
const depthMax = 200;

const base: Constants = {
  Servers: "{a, b}",
  Commands: "{x}",
  Lease: 2,
  Margin: 1,
  Drift: 1,
  Apart: "FALSE",
  TermsMax: 2,
  CommitsMax: 1,
  PromotionsMax: 0,
  Fault: '"none"',
};

/** Each is large in one respect, since a model that is large in all of them would take hours. */
const models = {
  "requests that take time": { Apart: "TRUE" },
  "two commands": { Commands: "{x, y}", CommitsMax: 2 },
  "three terms": { TermsMax: 3 },
  "a replica promoted": { PromotionsMax: 1 },
  "commits dropped by a promotion": { Servers: "{a}", CommitsMax: 2, PromotionsMax: 1 },
  "a backup restored twice": { Servers: "{a}", TermsMax: 1, CommitsMax: 2, PromotionsMax: 2 },
} satisfies Record<string, Constants>;

const invariants = [
  "OneServerAnswers",
  "AnswersAgree",
  "NothingAcknowledgedIsLost",
  "DeposedNeverCommits",
  "FencesGrow",
  "AppliedOnce",
];

const twins: readonly { readonly fault: string; readonly violates: string; readonly model: Model }[] = [
  { fault: "campaigns within the lease", violates: "OneServerAnswers", model: "three terms" },
  { fault: "unknown election is won", violates: "OneServerAnswers", model: "requests that take time" },
  { fault: "renewal ignores epoch", violates: "OneServerAnswers", model: "requests that take time" },
  { fault: "deadline from reply", violates: "OneServerAnswers", model: "requests that take time" },
  { fault: "resigns while answering", violates: "OneServerAnswers", model: "three terms" },
  { fault: "answers unfenced", violates: "AnswersAgree", model: "three terms" },
  { fault: "answers before the commit", violates: "NothingAcknowledgedIsLost", model: "three terms" },
  { fault: "commit ignores epoch", violates: "DeposedNeverCommits", model: "three terms" },
  { fault: "commit ignores epoch", violates: "NothingAcknowledgedIsLost", model: "two commands" },
  { fault: "commit ignores number", violates: "AppliedOnce", model: "two commands" },
  { fault: "timeline ignored", violates: "FencesGrow", model: "commits dropped by a promotion" },
  { fault: "timeline checked at election only", violates: "FencesGrow", model: "commits dropped by a promotion" },
  { fault: "epoch does not jump", violates: "FencesGrow", model: "commits dropped by a promotion" },
  { fault: "no wait on a new timeline", violates: "OneServerAnswers", model: "a replica promoted" },
  { fault: "jump without clock", violates: "FencesGrow", model: "a backup restored twice" },
];

/** Situations that the fault-free models must contain. */
const reached: readonly { readonly denied: string; readonly model: Model }[] = [
  { denied: "NoSecondLeader", model: "requests that take time" },
  { denied: "NoUnknownOutcomeInherited", model: "two commands" },
  { denied: "NoLossByPromotion", model: "a replica promoted" },
  { denied: "NoCommitAfterPromotion", model: "a replica promoted" },
];

const spec = readFileSync("spec/leader.tla", "utf8");
initSync({ module: readFileSync(fileURLToPath(import.meta.resolve("tla-checker/tla_checker_bg.wasm"))) });

for (const name of Object.keys(models) as Model[]) {
  test(`leader.tla: every invariant holds with ${name}`, (t) => {
    const result = check(models[name], invariants);
    assert.ok(result.success, described(result));
    t.diagnostic(`${result.states_explored} states`);
  });
}

for (const { fault, violates, model } of twins) {
  test(`leader.tla: the fault "${fault}" violates ${violates}`, () => {
    assertViolated(check({ ...models[model], Fault: `"${fault}"` }, [violates]));
  });
}

test("leader.tla: a server that takes no margin off its lease violates OneServerAnswers", () => {
  assertViolated(check({ ...models["requests that take time"], Margin: 0 }, ["OneServerAnswers"]));
});

for (const { denied, model } of reached) {
  test(`leader.tla: the model reaches what ${denied} denies`, () => {
    assertViolated(check(models[model], [denied]));
  });
}

test("leader.tla: every fault of the specification is planted here, and every invariant has a fault that violates it", () => {
  const faults = new Set([...spec.matchAll(/Fault = "([^"]+)"/g)].map(([, fault]) => fault));
  assert.deepEqual([...new Set(twins.map(({ fault }) => fault))].sort(), [...faults].sort());
  assert.deepEqual([...new Set(twins.map(({ violates }) => violates))].sort(), [...invariants].sort());
});

function check(constants: Constants, checked: readonly string[]): Result {
  const values = Object.entries({ ...base, ...constants }).map(([name, value]) => `${name} = ${value}`);
  const config = [
    ...["INIT Init", "NEXT Next", "SYMMETRY Servers", "CHECK_DEADLOCK FALSE"],
    ...["CONSTANTS", ...values],
    ...["INVARIANTS", ...checked],
  ];
  return JSON.parse(check_spec_with_cfg(spec, config.join("\n"), "{}", statesMax, depthMax, true, false)) as Result;
}

/** A trace shows that it was found by a run of the model, not by an error in the specification. */
function assertViolated(result: Result): void {
  assert.equal(result.error_type, "InvariantViolation", described(result));
  assert.ok(result.trace !== null && result.trace.length > 0);
}

function described({ error_type, error_message, states_explored, trace }: Result): string {
  return [`${error_type ?? "holds"}: ${error_message ?? ""} (${states_explored} states)`, ...(trace ?? [])].join("\n");
}
