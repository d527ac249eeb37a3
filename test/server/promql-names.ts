/** What expressions of PromQL name: metrics, the labels that they select or group by, and which of them are not in a scrape. */
import type { Family, Sample } from "./prometheus-text.ts";

export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

/** Prometheus adds them to what it scrapes. */
const addedLabels: readonly string[] = ["job", "instance"];
const selector = /\b((?:leasehold|process)_\w+)(?:\{([^}]*)\})?/g;
const matcher = /(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g;
const grouping = /\bby \(([^)]*)\)/g;

export function selectorsOf(expression: string): readonly Selector[] {
  return [...expression.matchAll(selector)].map(([, metric = "", inner = ""]) => ({
    metric,
    matchers: [...inner.matchAll(matcher)].map(([, label = "", operator = "", value = ""]) => ({
      label,
      operator,
      value,
    })),
  }));
}

/** One line for each name that the scrape does not have. */
export function missingIn(families: ReadonlyMap<string, Family>, expression: string): readonly string[] {
  const selectors = selectorsOf(expression);
  if (selectors.length === 0) return [`no metric is named: ${expression}`];
  const samples = [...families.values()].flatMap((family) => family.samples);
  const grouped = [...expression.matchAll(grouping)].flatMap(([, labels = ""]) => labels.split(/,\s*/));
  const absent = selectors.flatMap(({ metric, matchers }) => {
    const own = samples.filter(({ name }) => name === metric);
    if (own.length === 0) return [`${metric} is not scraped`];
    return matchers.flatMap((one) => missingValue(metric, own, one));
  });
  const labels = new Set(samples.filter(isNamed).flatMap((sample) => [...sample.labels.keys()]));
  const unknown = grouped.filter((label) => !addedLabels.includes(label) && !labels.has(label));
  return [...absent, ...unknown.map((label) => `no metric has the label ${label}: ${expression}`)];

  function isNamed({ name }: Sample): boolean {
    return selectors.some(({ metric }) => metric === name);
  }
}

/** Each alternative of a pattern must occur, so that a misspelled one is found. */
function missingValue(metric: string, samples: readonly Sample[], { label, operator, value }: Matcher): string[] {
  if (addedLabels.includes(label)) return [];
  const values = new Set(samples.flatMap(({ labels }) => labels.get(label) ?? []));
  if (values.size === 0) return [`${metric} has no label ${label}`];
  if (operator === "!=" || operator === "!~") return [];
  const wanted = operator === "=" ? [value] : alternativesOf(value);
  return wanted
    .filter((one) => ![...values].some((known) => new RegExp(`^(?:${one})$`).test(known)))
    .map((one) => `${metric} has no ${label} ${one}`);
}

function alternativesOf(pattern: string): readonly string[] {
  const [, before = "", inner = pattern, after = ""] = /^(.*)\((.*)\)(.*)$/.exec(pattern) ?? [];
  return inner.split("|").map((one) => `${before}${one}${after}`);
}
