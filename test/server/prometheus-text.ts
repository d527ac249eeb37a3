/**
 * A strict reader of the text format of Prometheus, and the rules that `promtool check metrics` holds names, types and
 * labels to.
 */

export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  help: string;
  type: string;
  readonly samples: Sample[];
}

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)$/;
const labelPair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
const types: readonly string[] = ["counter", "gauge", "histogram", "summary", "untyped"];

/** Throws where a line is not of the format. */
export function parseMetrics(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the last line does not end");
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  const familyOf = (name: string): Family => {
    const family = families.get(name) ?? { name, help: "", type: "", samples: [] };
    families.set(name, family);
    return family;
  };
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, word, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (word !== undefined) {
      const family = familyOf(name);
      if (!metricName.test(name)) throw new Error(`not a name: ${line}`);
      if (family.samples.length > 0) throw new Error(`${word} after samples: ${line}`);
      if ((word === "HELP" ? family.help : family.type) !== "") throw new Error(`a second ${word}: ${line}`);
      if (word === "HELP") family.help = rest;
      else if (types.includes(rest)) family.type = rest;
      else throw new Error(`not a type: ${line}`);
      continue;
    }
    if (line.startsWith("#")) continue;
    const sample = readSample(line);
    const owner = families.get(sample.name) ?? families.get(sample.name.replace(/_(bucket|sum|count)$/, ""));
    if (owner === undefined || owner.type === "") throw new Error(`a sample without a type: ${line}`);
    const series = line.slice(0, line.lastIndexOf(" "));
    if (seen.has(series)) throw new Error(`twice: ${series}`);
    seen.add(series);
    owner.samples.push(sample);
  }
  return families;
}

function readSample(line: string): Sample {
  const [, name, inner, value] = sampleLine.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Error(`not a sample: ${line}`);
  const labels = new Map<string, string>();
  labelPair.lastIndex = 0;
  for (let at = 0; inner !== undefined && at < inner.length; at = labelPair.lastIndex) {
    labelPair.lastIndex = at;
    const [, label, text] = labelPair.exec(inner) ?? [];
    if (label === undefined || text === undefined || labels.has(label)) throw new Error(`not labels: ${line}`);
    labels.set(label, text);
  }
  const number = value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value);
  if (Number.isNaN(number) && value !== "NaN") throw new Error(`not a number: ${line}`);
  return { name, labels, value: number };
}

const abbreviations = ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];
const otherUnits = "milliseconds microseconds nanoseconds minutes hours days kilobytes megabytes gigabytes bits".split(
  " ",
);
const typeWords = ["counter", "gauge", "histogram", "summary", "metric"];

/** What `promtool check metrics` complains of, and a histogram that does not add up. */
export function lintMetrics(families: ReadonlyMap<string, Family>): readonly string[] {
  return [...families.values()].flatMap(({ name, help, type, samples }) => {
    const words = name.split("_");
    const labels = new Set(samples.flatMap((sample) => [...sample.labels.keys()]));
    const faults: readonly (readonly [boolean, string])[] = [
      [help === "", "has no help text"],
      [type === "" || type === "untyped", "has no type"],
      [type === "counter" && !name.endsWith("_total"), "is a counter without _total"],
      [type !== "counter" && name.endsWith("_total"), "is not a counter, and has _total"],
      [type !== "histogram" && labels.has("le"), "is not a histogram, and has the label le"],
      [type !== "summary" && labels.has("quantile"), "is not a summary, and has the label quantile"],
      [type !== "histogram" && type !== "summary" && /_(bucket|count|sum)$/.test(name), "ends as a histogram's series"],
      [type !== "histogram" && /_bucket$/.test(name), "ends as a histogram's buckets"],
      [name.includes(":"), "has a colon, which is for rules"],
      [/[a-z][A-Z]/.test(name) || [...labels].some((label) => /[a-z][A-Z]/.test(label)), "is in camel case"],
      [words.some((word) => typeWords.includes(word)), "names its type"],
      [words.some((word) => otherUnits.includes(word)), "is not in a base unit"],
      [words.some((word) => abbreviations.includes(word)), "abbreviates a unit"],
      [type === "histogram" && !addsUp(name, samples), "does not add up"],
    ];
    return faults.filter(([isFault]) => isFault).map(([, fault]) => `${name} ${fault}`);
  });
}

/** Buckets only grow, and the last one is the count. */
function addsUp(name: string, samples: readonly Sample[]): boolean {
  const counts = samples.filter((sample) => sample.name === `${name}_count`);
  return counts.every((count) => {
    const own = samples.filter(
      (sample) =>
        sample.name === `${name}_bucket` &&
        [...count.labels].every(([label, value]) => sample.labels.get(label) === value),
    );
    const grows = own.every(({ value }, index) => value >= (own[index - 1]?.value ?? 0));
    return grows && own.at(-1)?.labels.get("le") === "+Inf" && own.at(-1)?.value === count.value;
  });
}
