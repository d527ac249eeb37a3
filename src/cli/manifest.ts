/**
 * A manifest as it is typed. Mode, units and target are said before or after the names they are about, as with `flock`:
 * `-x src/auth.ts -s src/types/` is one MUTATES and one CONSUMES, granted together or not at all (W6).
 */
import { predicates } from "../protocol/schema/vocabulary.ts";
import type { Intent } from "../sdk/wire.ts";
import type { Call, Flag, Flags, Token } from "./command.ts";
import { UsageProblem } from "./problem.ts";

export const manifestFlags: Flags = {
  exclusive: { short: "x", words: "MUTATES the names that follow; this is what happens without a mode" },
  shared: { short: "s", words: "CONSUMES the names that follow: others may read too" },
  predicate: {
    sign: "P",
    short: "p",
    words: `another predicate for the names that follow: ${predicates.join(", ")}`,
    choices: predicates,
    many: true,
  },
  units: {
    sign: "N",
    words: "units of a counted resource: once for all, or each time for the names that follow",
    many: true,
  },
  to: { sign: "RES", words: "where the name before goes, with RENAMES", many: true },
};

/** For commands that hold what they get: a pattern without it is a lease on all that it names. */
export const anyFlag: Flag = { words: "of a pattern such as DB:/shop/*, one resource that is free" };

const modes = ["exclusive", "shared", "predicate"];

type Predicate = Intent["predicate"];

export function readManifest(call: Call): readonly Intent[] {
  let predicate: Predicate = "MUTATES";
  const allUnits = call.texts("units");
  let units = allUnits.length === 1 ? readUnits(allUnits[0] ?? "") : null;
  const intents: Intent[] = [];
  for (const token of call.tokens) {
    if (token.kind === "word") {
      const to = predicate === "RENAMES" ? { to: "" } : {};
      intents.push({ predicate, resource: call.resource(token.text), ...(units !== null && { units }), ...to });
      continue;
    }
    const { name, value } = token;
    if (name === "exclusive") predicate = "MUTATES";
    else if (name === "shared") predicate = "CONSUMES";
    else if (name === "predicate") predicate = readPredicate(value ?? "");
    else if (name === "units") units = readUnits(value ?? "");
    else if (name === "to") setTarget(intents, call.resource(value ?? ""));
  }
  const aimless = intents.find(({ to }) => to === "");
  if (aimless !== undefined) throw new UsageProblem(`say with --to where ${aimless.resource} goes`);
  const isName = ({ kind }: Token) => kind === "word";
  const behind = call.tokens.slice(call.tokens.findLastIndex(isName) + 1);
  const mode = behind.find((token) => token.kind === "flag" && modes.includes(token.name));
  if (mode !== undefined && intents.length > 0) {
    throw new UsageProblem("-x, -s and -p stand before the names that they are about; no name stands behind the last");
  }
  if (intents.length === 0) {
    throw new UsageProblem("name what to lease: FILE:/shop/src/auth.ts, or a path such as src/auth.ts");
  }
  return intents;
}

/** The same where `--any` may be given. */
export function readChoice(call: Call): readonly Intent[] {
  const intents = readManifest(call);
  if (!call.isSet("any")) return intents;
  const isPattern = ({ resource }: Intent) => /[*?]/.test(resource);
  if (!intents.some(isPattern)) throw new UsageProblem("--any takes a pattern, such as DB:/shop/*, to choose from");
  return intents.map((intent): Intent => (isPattern(intent) ? { ...intent, pick: "any" } : intent));
}

/** What a task will touch, said with flags of their own because its words are about something else. */
export function readIntents(call: Call): readonly Intent[] {
  return [
    ...call.texts("mutates").map((name): Intent => ({ predicate: "MUTATES", resource: call.resource(name) })),
    ...call.texts("consumes").map((name): Intent => ({ predicate: "CONSUMES", resource: call.resource(name) })),
  ];
}

function readPredicate(text: string): Predicate {
  const found = predicates.find((one) => one === text.toUpperCase());
  if (found !== undefined) return found;
  throw new UsageProblem(`-p/--predicate is "${text}"; give one of ${predicates.join(", ")}`);
}

function readUnits(text: string): number {
  const units = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (units >= 1) return units;
  throw new UsageProblem(`--units is "${text}"; give a whole number from 1`);
}

function setTarget(intents: Intent[], to: string): void {
  const last = intents.pop();
  if (last?.predicate !== "RENAMES") throw new UsageProblem("--to stands behind a name with -p RENAMES");
  intents.push({ ...last, to });
}
