import { existsSync } from "node:fs";

// The server takes this file's place. Until then it says what can be used, and looks, so that it is never wrong.
const parts: readonly (readonly [path: string, what: string])[] = [
  ["src/kernel", "the kernel: every rule, without I/O         npm test -- src/kernel"],
  ["src/protocol", "the wire schemas and error codes            npm test -- src/protocol"],
  ["src/store", "the stores, and the contract they pass      npm test -- src/store"],
  ["sim/main.ts", "the deterministic simulation                npm run sim"],
  ["src/engine", "the engine: batches, clock, commits         npm test -- src/engine"],
  ["src/server", "the server on 127.0.0.1:7117                npm start"],
];

console.log("Leasehold grants time-bounded leases to fleets of AI agents and workers.\n");
for (const [path, what] of parts) console.log(`  ${existsSync(path) ? "there  " : "not yet"}  ${what}`);
console.log("\nThe server is not in yet, so nothing listens. `npm test` runs everything that is there.");
