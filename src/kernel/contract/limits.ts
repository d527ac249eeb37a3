/** Every number that limits something, by name, in one place (S4). Tenants have settings and quotas of their own in records.ts. */

export const limits = {
  ttlMsMin: 100,
  intentsMax: 256,
  unitsMax: 1_000_000_000,
  /** G15: how long units take to come back: at most 31 days. */
  refillMsMin: 100,
  refillMsMax: 2_678_400_000,
  /** G15: moments at which units of one resource come back within that time; more units share them. */
  refillMomentsMax: 64,
  purposeLengthMax: 1_024,
  versionLengthMax: 1_024,
  keyLengthMax: 256,
  idLengthMax: 128,
  resourceLengthMax: 1_024,
  reasonLengthMax: 1_024,
  labelsMax: 32,
  labelLengthMax: 256,
  digestBytesMax: 262_144,
  /** Leases named in one command; for more, name none. */
  leaseIdsMax: 10_000,
  /** Leases that an answer lists; of more it says how many there are. */
  leasesListedMax: 10_000,
  /** L14: records that one step ends or changes; more are done slice by slice. */
  recordsPerStepMax: 500,
  blockersListedMax: 16,
  /** Obstacles of a refused request that are examined one by one; the others are counted (C5, W11). */
  obstaclesExaminedMax: 256,
  /** A4: the youngest ended leases, of all tenants, that are kept in memory for observation updates. */
  endsRememberedMax: 65_536,
  /** How many of them one command looks at when their leases are about to be deleted. */
  endsForgottenAtOnceMax: 4_096,
  /** A5: last writes with a version, of a tenant, that are kept beyond those, one for each name. */
  lastWritesMax: 65_536,
  /** A4: what one observation update lists, and how many names it looks up. */
  changesListedMax: 1_000,
  namesObservedMax: 4_096,
  /** A4: names and ends that one observation update looks at. */
  observationStepsMax: 65_536,
  /** A4: resources that an agent waited for, died for or lost, kept until an update had them. */
  concernsMax: 256,
  /** A5: in one resume. */
  assumptionsMax: 1_024,
  /** L9: how long a missed lease is held for an agent that restarts. */
  heldMs: 15_000,
  /** W14: how long a request may stand by; a held answer ends then too. */
  standbyMsMax: 55_000,
  /** T12: how long a key of a creation that begins with `once_` is remembered after its task. */
  onceKeyMs: 600_000,
  /** W10: how long ended requests are remembered, and how many of a tenant by memory; beyond, the store has their keys. */
  requestMemoryMs: 600_000,
  requestMemoryPerTenantMax: 20_000,
  /** S4: an agent without lease or request is forgotten after a week. */
  agentIdleMs: 7 * 24 * 3_600_000,
  leaseTimeWindowMs: 24 * 3_600_000,
  /** G6, G7: a cell that has not bound or torn down by then has failed. */
  bindMs: 10_000,
  teardownMs: 10_000,
  /** A cell without a heartbeat for this long is gone. */
  cellAliveMs: 15_000,
  /** How long a key's former secret is good after a rotation, where nothing is said, and at most. */
  keyOverlapMsDefault: 24 * 3_600_000,
  keyOverlapMsMax: 30 * 24 * 3_600_000,
  /** When a key was last used is stored when it is this much later than what is stored. */
  keyUseMs: 60_000,
  cellsMax: 10_000,
  cellInventoryMax: 1_000,
  cellBindingsMax: 10_000,
  cellHardwareMax: 32,
  cellDriverLengthMax: 64,
  /** Resources that one can be picked from. */
  pickMatchesMax: 1_000,
  /** Types with a quota of their own. */
  kindsMax: 256,
  // Policies: those of all tenants, the rules of each, and what a rule may list. Every acquire may have to pass them all.
  policiesMax: 256,
  policyRulesMax: 32,
  policyItemsMax: 64,
  policyIdLengthMax: 64,
  policyDepthMax: 16,
  policyChecksMax: 256,
  /**
   * L11: where history may have been lost, numbers jump to the milliseconds since 2020, times this. That is more than are
   * given, and stays below 2^53 until 2080. Behind a wall clock that is wrong they jump by a fixed number.
   */
  lossEpoch: 1_577_836_800_000,
  lossNumbersPerMs: 2 ** 12,
  lossNumberMax: 2 ** 53 - 2 ** 50,
  lossJump: 2 ** 40,
  // Tasks (T1–T13).
  traceparentLength: 55,
  taskPriorityMax: 1_000,
  /** A task gains a level of priority over one that is younger by this much, so that none is starved. */
  taskAgeingMsPerLevel: 60_000,
  /** How many levels it is worth that a worker prefers a kind, or had the task before (T7). */
  taskPreferredLevels: 10,
  taskAffinityLevels: 10,
  taskLeaseMsDefault: 900_000,
  taskLeaseMsMax: 86_400_000,
  taskAttemptsDefault: 3,
  taskAttemptsMax: 1_000,
  taskOffersDefault: 10,
  taskOffersMax: 10_000,
  taskRequeueMsDefault: 30_000,
  taskDelayMsMax: 366 * 86_400_000,
  taskRequiresMax: 32,
  taskPreferredMax: 32,
  taskDependsOnMax: 256,
  taskConcurrencyMax: 1_000_000,
  taskPollMax: 1_000,
  /** Payloads in the offers of one poll: it ends with the one that passes it (S4). */
  offerBytesMax: 4 * 1024 * 1024,
  /** Tasks that one poll looks at before it answers with what it has. */
  taskExaminedMax: 2_000,
  /** Kinds of queued work: types of tasks, each with each set of required capabilities. */
  taskLanesMax: 4_096,
  /** Types whose settings and usual duration are kept. */
  taskTypesMax: 4_096,
  /** Ended attempts of a task that are remembered. */
  taskPastMax: 8,
  /** Passed over this often because of its manifest, a task queues for it (T10), for `taskWaitMs` at a time. */
  taskPassedOverMax: 3,
  taskWaitMs: 60_000,
  /** T10: the pause before a task whose resources no cell could set up is tried again; it doubles up to the most. */
  taskBindBackoffMs: 1_000,
  taskBindBackoffMsMax: 60_000,
  /** How long a worker whose task was canceled keeps what it holds, so that it can stop in order. */
  taskCancelMs: 30_000,
  /** How long an urgent task has waited before a worker is asked to make room (T8). */
  taskPreemptAfterMs: 1_000,
  /** How long a worker that was asked to make room has, and how long the urgent task is kept for it afterwards (T8). */
  taskPreemptGraceMs: 30_000,
  /** Tasks with lost holders that are watched for other grants; the oldest beyond count as contested (T13). */
  taskLateResultsMax: 1_000,
  speculateShareMin: 0.001,
  speculateShareMax: 1_000,
  /** How many samples make a usual duration, and how quickly it follows. */
  taskSamplesMin: 5,
  workerIdleMs: 7 * 24 * 3_600_000,
  workerSeenMs: 30_000,
  workerPollsRemembered: 8,
  workersMax: 100_000,
  workerCapabilitiesMax: 256,
  /** Sizes of LegiVellum receipts. */
  taskBodyBytesMax: 102_400,
  inputsBytesMax: 65_536,
  metadataBytesMax: 16_384,
  receiptBodyBytesMax: 102_400,
  receiptTextMax: 4_096,
  dedupeKeysPerTaskMax: 256,
  /** The same for an obligation on a task that this system does not own. */
  foreignDedupeKeysMax: 16,
} as const;
