/**
 * A reporter for node's test runner: one line of JSON for the first test that passes, which shows that tests ran at all, and
 * one for each that fails, as soon as it fails.
 */
import type { TestEvent } from "node:test/reporters";

/** The test's file and name. */
export type Report = readonly [outcome: "passed" | "failed", file: string, name: string];

export default async function* failures(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let hasPassed = false;
  for await (const event of source) {
    if (event.type !== "test:fail" && event.type !== "test:pass") continue;
    const { file = "", name, todo, skip, details } = event.data;
    if (todo !== undefined || skip !== undefined || details.type === "suite") continue;
    // A file without tests passes as one of its own name.
    if (event.type === "test:pass" && (hasPassed || file.endsWith(name))) continue;
    hasPassed = hasPassed || event.type === "test:pass";
    const report: Report = [event.type === "test:pass" ? "passed" : "failed", file, name];
    yield `${JSON.stringify(report)}\n`;
  }
}
