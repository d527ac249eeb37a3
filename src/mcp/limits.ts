/** The numbers of the MCP edge, by name, in one place (S4). */
export const limits = {
  /** Clients cut a call at about 60 s, so a wait is answered well before, with the word to ask again. */
  holdMsMax: 45_000,
  holdMsDefault: 40_000,
  /** A poll that finds no work should not keep a model from other things. */
  pollHoldMsDefault: 10_000,
  /** A model comes back to a wait only after a while of thinking. */
  waitTimeoutMsDefault: 300_000,
  /** Older work is in the way and nothing is held: it stands by before it gets DIE (W14). */
  standbyMsDefault: 55_000,
  /** Over HTTP nobody beats between two calls of a model, so its leases last as long as they may. */
  ttlMsDefault: 300_000,
} as const;
