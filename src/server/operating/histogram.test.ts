import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "./histogram.ts";

test("a histogram counts a value under every bound that it does not exceed, by labels, and sums them up", () => {
  const histogram = new Histogram("took_seconds", "How long it took.", [0.5, 1]);
  const read = histogram.addSeries({ operation: "read", outcome: "ok" });
  for (const value of [0.5, 0.75, 1, 4]) read.observe(value);
  histogram.addSeries();
  assert.deepEqual(histogram.text.split("\n"), [
    "# HELP took_seconds How long it took.",
    "# TYPE took_seconds histogram",
    'took_seconds_bucket{le="0.5",operation="read",outcome="ok"} 1',
    'took_seconds_bucket{le="1",operation="read",outcome="ok"} 3',
    'took_seconds_bucket{le="+Inf",operation="read",outcome="ok"} 4',
    'took_seconds_sum{operation="read",outcome="ok"} 6.25',
    'took_seconds_count{operation="read",outcome="ok"} 4',
    'took_seconds_bucket{le="0.5"} 0',
    'took_seconds_bucket{le="1"} 0',
    'took_seconds_bucket{le="+Inf"} 0',
    "took_seconds_sum 0",
    "took_seconds_count 0",
  ]);
});
