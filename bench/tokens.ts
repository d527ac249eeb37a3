/**
 * How fast one core verifies tokens with three caveats. Every token is different, so nothing is cached.
 *
 *   npm run bench:tokens [-- --seconds 3 --rounds 5]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { mint } from "../src/token/mint.ts";
import { narrow } from "../src/token/narrow.ts";
import { MasterKeys } from "../src/token/node/master-keys.ts";
import { verify } from "../src/token/verify.ts";
import { chanceFrom, goodAttempt } from "../torture/token-forgeries.ts";
import { format, median } from "./children.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "2" }, rounds: { type: "string", default: "5" } },
});
const bar = 50_000;
const distinct = 2_000;
const folder = mkdtempSync(join(tmpdir(), "leasehold-tokens-"));
const keys = MasterKeys.open(folder, 0);
const now = 1_800_000_000_000;
const chance = chanceFrom(1);
const presented = { now, tenant: "acme", cell: "lab-1", resource: "GPU:/lab/a", lease: "l", generation: 1, fence: 7 };
const attempts = Array.from({ length: distinct }, (_, index) =>
  goodAttempt(keys, { ...presented, lease: `lease-${index}` }, chance),
);
const plain = mint(keys, { ...presented, expiresAt: now + 60_000, predicate: "MUTATES" }, now);

const work = {
  mint: () => mint(keys, { ...presented, expiresAt: now + 60_000, predicate: "MUTATES" }, now).length > 0,
  "narrow by one": () => typeof narrow(plain, [{ type: "operations", operations: ["read"] }]) === "string",
  "verify with three caveats": (turn: number) => {
    const attempt = attempts[turn % distinct];
    return attempt !== undefined && !("code" in verify(attempt.token, keys, attempt.presented));
  },
} satisfies Record<string, (turn: number) => boolean>;

for (const [name, one] of Object.entries(work)) {
  const rates = Array.from({ length: Number(values.rounds) }, () => rateOf(one, Number(values.seconds) * 1_000));
  const isChecked = name.startsWith("verify");
  const isMissed = isChecked && median(rates) < bar;
  console.log(
    `${name.padEnd(26)} ${format(median(rates)).padStart(9)}/s${isChecked ? ` (bar ${format(bar)})` : ""}${isMissed ? ": MISSED" : ""}`,
  );
  if (isMissed) process.exitCode = 1;
}
rmSync(folder, { recursive: true, force: true });

function rateOf(one: (turn: number) => boolean, forMs: number): number {
  const start = performance.now();
  let turns = 0;
  while (performance.now() - start < forMs) {
    for (let count = 0; count < 500; count++) if (!one(turns++)) throw new Error("A good token was refused.");
  }
  return (turns * 1_000) / (performance.now() - start);
}
