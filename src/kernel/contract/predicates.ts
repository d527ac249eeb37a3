/** What a holder intends (KLIS-1), and which intents get along (C1). */

export const predicates = ["PROVIDES", "CONSUMES", "MUTATES", "DELETES", "DEPENDS_ON", "RENAMES"] as const;
export type Predicate = (typeof predicates)[number];

/**
 * C1's matrix has only three kinds of rows, and they are ordered: each conflicts with all that the weaker one
 * conflicts with. Numbered so, two intents conflict exactly when their strengths add up to 2 or more:
 * readers (0) get along with readers and one provider (1); exclusive ones (2) with nobody.
 */
export type Strength = 0 | 1 | 2;
export const SHARED = 0;
export const PROVIDING = 1;
export const EXCLUSIVE = 2;

export const strengths: Readonly<Record<Predicate, Strength>> = {
  PROVIDES: PROVIDING,
  CONSUMES: SHARED,
  MUTATES: EXCLUSIVE,
  DELETES: EXCLUSIVE,
  DEPENDS_ON: SHARED,
  RENAMES: EXCLUSIVE,
};

/** A writing lease may have changed its resource; its end counts in observation updates (A4). */
export const writing: Readonly<Record<Predicate, boolean>> = {
  PROVIDES: true,
  CONSUMES: false,
  MUTATES: true,
  DELETES: true,
  DEPENDS_ON: false,
  RENAMES: true,
};

/** By strength: the weakest one that conflicts with it; every stronger one conflicts too. */
export const weakestConflicting = [EXCLUSIVE, PROVIDING, SHARED] as const satisfies Readonly<
  Record<Strength, Strength>
>;

/** G4: whether its holder may look but not write; a token of such a lease opens only what reads. */
export function readsOnly(predicate: Predicate): boolean {
  return strengths[predicate] === SHARED;
}

export function strengthsConflict(a: Strength, b: Strength): boolean {
  return a + b >= 2;
}

/** A text off the wire as the one constant that it equals: looking that up later costs less than a fresh text does. */
export function readPredicate(text: string): Predicate | undefined {
  for (const predicate of predicates) if (predicate === text) return predicate;
  return undefined;
}
