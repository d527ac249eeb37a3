/** Why an agent is PAUSED, and what those who watch a fleet call what it does. */

/**
 * It got WAIT (or STANDBY), DIE or PAUSED, it was wounded (W7), or it lost its last lease. It says who has to act:
 * others, the agent itself, or a person.
 */
export const pauseCauses = ["wait", "die", "paused", "wounded", "lost"] as const;
export type PauseCause = (typeof pauseCauses)[number];

/**
 * Five answers that are never merged:
 * - `working`: it holds a live lease and waits for nothing.
 * - `blocked`: a request of it waits, stands by or is being set up; or it got DIE or WAIT, and will ask again.
 * - `waiting_for_person`: its operator has paused it, or its last verdict was PAUSED: somebody must act (W9).
 * - `idle`: it neither has nor wants anything.
 * - `lost`: it restarts (L9), it lost its last lease without a word, or it should have asked again and has not.
 */
export const activities = ["working", "blocked", "waiting_for_person", "idle", "lost"] as const;
export type Activity = (typeof activities)[number];

/** A paused agent that has not asked again for this long after it was to is lost. */
export const silentMsMax = 60_000;
