/** A reporter for node's test runner: one line of JSON for each failed test, as soon as it fails, and nothing else. */
import type { TestEvent } from "node:test/reporters";

/** The test's file and name. */
export type Failure = readonly [file: string, name: string];

export default async function* failures(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of source) {
    if (event.type !== "test:fail" || event.data.todo !== undefined || event.data.details.type === "suite") continue;
    const failure: Failure = [event.data.file ?? "", event.data.name];
    yield `${JSON.stringify(failure)}\n`;
  }
}
