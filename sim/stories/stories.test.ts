import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { test } from "node:test";
import { docsPage, play, readStories, storiesIn } from "./story.ts";

const stories = readStories();

test("there are stories", () => assert.ok(stories.length >= 20));

for (const { path, text, played } of stories) {
  const title = text.slice(0, text.indexOf("\n"));
  test(`the kernel plays the story "${title}" as ${basename(path)} has it`, () => {
    assert.equal(played, text, "if the change is meant, run npm run stories -- --rewrite");
    assert.match(
      text,
      /^[^\n]+\n\n(?:[LCWAGTRS]\d+(?:, )?)+: /,
      "a story has a title and names the rules that it shows",
    );
  });
}

test("a story with a changed expectation, a missing line or another command is found", () => {
  const text = stories.find(({ path }) => path.endsWith("expiry-hands-over.txt"))?.text ?? "";
  for (const [from, to] of [
    ["REFUSED lease_expired", "OK lease 1 ACTIVE"],
    ["            request.granted request 1, agent.transitioned alice PAUSED → EXECUTING\n", ""],
    ["for 10s", "for 11s"],
  ] as const) {
    const changed = text.replace(from, to);
    assert.notEqual(changed, text);
    assert.notEqual(play(changed), changed);
  }
});

test("a sentence that no template matches, an unknown name and a step back in time are errors", () => {
  assert.throws(() => play("at 0 alice juggles lease 1"), /not a sentence/);
  assert.throws(() => play("given alice registers\nnow alice acquires MUTATES FILE:/a"), /neither/);
  assert.throws(() => play("given alice registers\nat 0 alice heartbeats lease 1"), /nothing is called "lease 1"/);
  assert.throws(() => play("at 5s time passes\nat 4s time passes"), /backwards/);
});

test(`the stories in ${docsPage} are the stories of sim/stories`, () => {
  const shown = storiesIn(readFileSync(docsPage, "utf8"));
  assert.ok(shown.length >= 3);
  for (const { name, text } of shown) {
    assert.equal(text, stories.find(({ path }) => basename(path) === `${name}.txt`)?.text, name);
  }
});
