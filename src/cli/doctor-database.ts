/** What `doctor --store` finds out about a PostgreSQL, before a server or a move trusts it. */
import { readDurability, volatileSettings } from "../server/cluster/database-checks.ts";
import { Database, placeOf } from "../store/postgres-connection.ts";
import type { Check } from "./doctor-checks.ts";
import { messageOf } from "./problem.ts";

const pings = 5;
/** A commit is one round trip, and every answer waits for one. */
const slowMs = 20;

export async function checkDatabase(url: string): Promise<Pick<Check, "status" | "detail">> {
  const problem = (detail: string) => ({ status: "problem", detail }) as const;
  let db: Database;
  try {
    db = new Database({ url });
  } catch (error) {
    return problem(messageOf(error));
  }
  try {
    const found = await readDurability(db);
    const { version, synchronousReplicas: sync, asynchronousReplicas: behind } = found;
    const tripMs = await roundTripMs(db);
    const what = `PostgreSQL ${version} at ${placeOf(url)} answers in ${tripMs.toFixed(1)} ms`;
    const volatile = volatileSettings(found);
    if (volatile.length > 0) {
      return problem(`${what}; it may lose what it has acknowledged (${volatile.join("; ")}): set it right`);
    }
    const commits = `synchronous_commit is ${found.synchronousCommit}`;
    const replicas = `${commits}, ${sync} synchronous and ${behind} asynchronous replicas`;
    if (behind > 0 && sync === 0) {
      return { status: "warning", detail: `${what}; ${replicas}: one that is promoted may lack the last commits` };
    }
    if (tripMs > slowMs) return { status: "warning", detail: `${what}, which every answer waits for; ${replicas}` };
    return { status: "ok", detail: `${what}; ${replicas}` };
  } catch (error) {
    return problem(messageOf(error));
  } finally {
    await db.close();
  }
}

async function roundTripMs(db: Database): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < pings; n++) {
    const began = performance.now();
    await db.read("SELECT 1");
    least = Math.min(least, performance.now() - began);
  }
  return least;
}
