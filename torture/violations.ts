/** Violations, each with the rule and the evidence. The run goes on to the end of its round and then fails. */
export interface Violation {
  readonly rule: string;
  readonly what: string;
  readonly evidence: unknown;
}

export interface Violations {
  readonly found: readonly Violation[];
  add(rule: string, what: string, evidence: unknown): void;
}

export function createViolations(): Violations {
  const found: Violation[] = [];
  return {
    found,
    add: (rule, what, evidence) => {
      found.push({ rule, what, evidence });
    },
  };
}

/** Many violations usually have one cause, and the first is nearest to it. */
const shownMax = 8;

export function describeViolations(found: readonly Violation[]): string {
  const shown = found.slice(0, shownMax).map(({ rule, what, evidence }) => {
    return `  ${rule}: ${what}\n    ${JSON.stringify(evidence)}`;
  });
  const more = found.length > shownMax ? [`  and ${found.length - shownMax} more`] : [];
  return [`${found.length} broken:`, ...shown, ...more].join("\n");
}
