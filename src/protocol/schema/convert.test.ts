import assert from "node:assert/strict";
import { test } from "node:test";
import {
  choice,
  fixed,
  flag,
  flat,
  from,
  hidden,
  integer,
  json,
  list,
  map,
  marked,
  named,
  omitted,
  optional,
  record,
  remaining,
  text,
  time,
} from "../../kernel/contract/field.ts";
import { formOf } from "./convert.ts";

const item = { name: text(), at: optional(time()) };
const described = {
  verdict: fixed("YES"),
  name: text(),
  kind: choice(["a", "b"]),
  secret: hidden(text()),
  inner: flat(record({ depth: integer(), note: marked("NA", optional(text())) })),
  items: named("all", list(record(item))),
  words: omitted(optional(list(text()))),
  warnings: omitted(optional(list(text()), [])),
  labels: map(text()),
  free: optional(json()),
  isSet: flag(),
  until: named("left_ms", remaining()),
  first: from("one?.name", optional(text())),
  whole: from("", record({ name: text() })),
};

const sample = {
  name: 'a "name"',
  kind: "a",
  secret: "not shown",
  inner: { depth: 2, note: null },
  items: [
    { name: "x", at: 0 },
    { name: "\ud800", at: null },
  ],
  words: ["w"],
  warnings: ["careful"],
  labels: { team: "core" },
  free: { any: [1] },
  isSet: false,
  until: 5_000,
  one: { name: "deep" },
};

test("the text and the object of a description say the same, in the same order", () => {
  const form = formOf<object>(described);
  for (const over of [{}, { words: [], warnings: [] }, { words: null, free: null, one: null, items: [] }]) {
    const value = { ...sample, ...over };
    const shown = form.object(value, { now: 2_000 });
    assert.equal(form.text(value, { now: 2_000 }), JSON.stringify(shown));
    // An empty list is left out only where that is what is usual.
    assert.equal("words" in shown, value.words !== null);
    assert.equal("warnings" in shown, value.warnings.length > 0);
  }
  assert.deepEqual(form.object(sample, { now: 2_000 }), {
    verdict: "YES",
    name: 'a "name"',
    kind: "a",
    depth: 2,
    note: "NA",
    all: [
      { name: "x", at: "1970-01-01T00:00:00.000Z" },
      { name: "\ud800", at: null },
    ],
    words: ["w"],
    warnings: ["careful"],
    labels: { team: "core" },
    free: { any: [1] },
    is_set: false,
    left_ms: 3_000,
    first: "deep",
    whole: { name: 'a "name"' },
  });
});

test("a time that has passed leaves nothing", () => {
  assert.equal(formOf<object>({ until: remaining() }).text({ until: 5 }, { now: 9 }), '{"until":0}');
});
