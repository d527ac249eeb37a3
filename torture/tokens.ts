/**
 * A million forged tokens of every kind, which must be refused, against keys that are rotated meanwhile; and after
 * every thousand a good one, which must be accepted.
 *
 *   npm run torture:tokens [-- --count 1000000 --seed 1]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MasterKeys } from "../src/token/node/master-keys.ts";
import { verify } from "../src/token/verify.ts";
import { chanceFrom, forge, forgeryKinds, goodAttempt } from "./token-forgeries.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "1000000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const count = Number(values.count);
const chance = chanceFrom(Number(values.seed));
const folder = mkdtempSync(join(tmpdir(), "leasehold-tokens-"));
const keys = MasterKeys.open(folder, 0);
const tally = new Map<string, { tried: number; accepted: number }>(
  forgeryKinds.map((kind) => [kind, { tried: 0, accepted: 0 }]),
);
let refusedGood = 0;
let tried = 0;

for (let round = 0; tried < count; round++) {
  const now = 1_800_000_000_000 + round * 10;
  if (round % 1_000 === 999) keys.rotate(now);
  const lease = `lease-${chance(1_000)}`;
  const place = { tenant: `t${chance(50)}`, cell: `c${chance(50)}`, resource: `GPU:/lab/${chance(100)}` };
  const good = goodAttempt(keys, { now, ...place, lease, generation: 1 + chance(5), fence: 1 + chance(1e9) }, chance);
  if ("code" in verify(good.token, keys, good.presented)) refusedGood++;
  for (const kind of forgeryKinds) {
    const attempt = forge(kind, keys, good, chance);
    if (attempt === null) continue;
    tried++;
    const row = tally.get(kind);
    if (row === undefined) continue;
    row.tried++;
    if (!("code" in verify(attempt.token, keys, attempt.presented))) row.accepted++;
  }
}
rmSync(folder, { recursive: true, force: true });

let accepted = 0;
for (const [kind, row] of tally) {
  accepted += row.accepted;
  console.log(`  ${kind.padEnd(20)} ${String(row.tried).padStart(8)} tried, ${row.accepted} accepted`);
}
console.log(`${tried} forgeries, ${accepted} accepted; good ones refused: ${refusedGood} (seed ${values.seed})`);
if (accepted > 0 || refusedGood > 0) process.exitCode = 1;
