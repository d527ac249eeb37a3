/**
 * `/metrics` of a server that leads several shards: the metrics of each, with its number as a label. What is of the process
 * and not of a shard is shown once.
 */

import type { Scope } from "../operating/meters.ts";
import type { Metrics } from "../operating/metrics.ts";

/** A process has these once, whichever of its shards counts them. */
const ofProcess = /^(process_|leasehold_(memory_bytes|info|loop_delay_seconds))/;

export class ShardMetrics {
  readonly #shards = new Map<number, Metrics>();

  /** Returns what shows all of them to operators, and to others the shard of their tenant. */
  add(shard: number, own: Metrics): Metrics {
    this.#shards.set(shard, own);
    return {
      contentType: own.contentType,
      text: (scope: Scope) => (scope === null ? this.#all() : own.text(scope)),
      close: () => {
        if (this.#shards.get(shard) === own) this.#shards.delete(shard);
        own.close();
      },
    };
  }

  async #all(): Promise<string> {
    const shards = [...this.#shards].sort(([one], [other]) => one - other);
    const texts = await Promise.all(shards.map(async ([shard, own]) => [shard, await own.text(null)] as const));
    return mergeMetrics(texts);
  }
}

/** Samples of one name stay together under its help, as the format asks for. */
export function mergeMetrics(texts: readonly (readonly [shard: number, text: string])[]): string {
  const families = new Map<string, string[]>();
  for (const [index, [shard, text]] of texts.entries()) {
    let family: string[] = [];
    let isShown = true;
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const [, what, name = ""] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? [];
      if (what === "HELP") {
        isShown = index === 0 || !ofProcess.test(name);
        family = families.get(name) ?? [];
        families.set(name, family);
        if (family.length === 0) family.push(line);
      } else if (what === "TYPE") {
        if (family.length === 1) family.push(line);
      } else if (isShown) family.push(ofProcess.test(line) ? line : labelled(line, shard));
    }
  }
  return `${[...families.values()].flat().join("\n")}\n`;
}

function labelled(sample: string, shard: number): string {
  const brace = sample.indexOf("{");
  const space = sample.indexOf(" ");
  if (brace !== -1 && brace < space) return `${sample.slice(0, brace)}{shard="${shard}",${sample.slice(brace + 1)}`;
  return `${sample.slice(0, space)}{shard="${shard}"}${sample.slice(space)}`;
}
