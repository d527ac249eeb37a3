/** Leases that only read (G4), for both sides that compare a token with its lease: cells and the control plane. */
import { type Predicate, readsOnly } from "../../kernel/contract/predicates.ts";

export type { Predicate };
export { readsOnly };

/** The operation that reads wherever nobody says otherwise. */
export const readOperation = "read";

/** null: the lease may do it. A token that names a weaker predicate than the lease has stays as weak as it says. */
export function readOnlyFailure(claimed: string | null, live: Predicate, reads: boolean) {
  if (reads || (!readsOnly(live) && (claimed === null || !readsOnly(claimed as Predicate)))) return null;
  const detail = "The lease only reads; acquire it with a predicate that writes.";
  return { code: "caveat_failed", detail, caveat: "predicate" } as const;
}
