/**
 * A million malformed requests, byte by byte, against the server and against a gateway in front of a service. Nothing may
 * crash, no answer may be a 5xx, the service must see only what the token allows, and no loop may be blocked by one of
 * them for over 50 ms.
 *
 *   npm run torture:bytes [-- --count 1000000 --seed 1 --target server|gateway]
 */
import { parseArgs } from "node:util";
import { attack } from "./byte-attack.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "1000000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    target: { type: "string" },
  },
});
const blockedMsMax = 50;
const targets = (["server", "gateway"] as const).filter((one) => values.target === undefined || values.target === one);
const count = Math.ceil(Number(values.count) / targets.length);
const seed = Number(values.seed);
console.log(`seed ${seed}, ${count} requests to each of ${targets.join(", ")}`);
let isBroken = false;
for (const target of targets) {
  const began = performance.now();
  let shownAt = began;
  const progress = (sent: number): void => {
    if (performance.now() < shownAt + 2_000) return;
    shownAt = performance.now();
    console.log(`  ${target} ${sent} sent, ${Math.round((sent / (shownAt - began)) * 1_000)} a second`);
  };
  const { rows, blockedMs, violations } = await attack({ target, count, seed, progress });
  console.log(
    `${target}`.padEnd(14),
    ...["sent", "none", "1xx", "2xx", "3xx", "4xx", "5xx"].map((one) => one.padStart(9)),
  );
  for (const [kind, { sent, answers }] of rows) {
    const cells = [sent, ...[0, 1, 2, 3, 4, 5].map((answerClass) => answers.get(answerClass) ?? 0)];
    console.log(`  ${kind.padEnd(12)}`, ...cells.map((cell) => String(cell).padStart(9)));
  }
  const isSlow = blockedMs > blockedMsMax;
  console.log(`  the loop was blocked for ${blockedMs.toFixed(1)} ms at most${isSlow ? `, over ${blockedMsMax}` : ""}`);
  for (const violation of violations) console.log(`  BROKEN: ${violation}`);
  isBroken ||= isSlow || violations.length > 0;
}
console.log(isBroken ? `broken; again with --seed ${seed}` : "held");
if (isBroken) process.exitCode = 1;
