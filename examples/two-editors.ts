/**
 * Adds lines to a file as editors do: reads the whole file, thinks, writes the whole file. Two at once would overwrite
 * each other's lines; with a lease they take turns, and no line is lost.
 *
 *   node examples/two-editors.ts FILE NAME COUNT
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as think } from "node:timers/promises";
import { createClient } from "../src/sdk/index.ts";

const [, , file = "notes.txt", name = "ann", count = "10"] = process.argv;
const { LEASEHOLD_URL, LEASEHOLD_KEY, LEASEHOLD_KEY_FILE } = process.env;
const client = createClient({ url: LEASEHOLD_URL, key: LEASEHOLD_KEY, keyFile: LEASEHOLD_KEY_FILE });
const resource = `FILE:/notes/${basename(file)}`;

for (let number = 1; number <= Number(count); number++) {
  await client.withLease(
    resource,
    async ({ signal, assertHeld, setVersion }) => {
      const text = existsSync(file) ? readFileSync(file, "utf8") : "";
      await think(Math.random() * 20, null, { signal });
      assertHeld();
      writeFileSync(file, `${text}${name} ${number}\n`);
      setVersion(resource, `${name}-${number}`);
    },
    { ttlMs: 5_000, purpose: `line ${number} of ${name}` },
  );
}
console.log(`${name} wrote ${count} lines`);
await client.close();
