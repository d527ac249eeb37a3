import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { shellWrites } from "../../src/guard/shell-writes.ts";
import { oracleFinds, overlooked, readCorpus, unlisted } from "./oracle.ts";

const corpus = readCorpus();

test("the corpus has at least 500 commands, each once, and the oracle reads nearly all", () => {
  assert.ok(corpus.length >= 500);
  assert.equal(new Set(corpus).size, corpus.length);
  const unread = corpus.filter((text) => oracleFinds(text) === null);
  assert.ok(unread.length <= 12, unread.join("\n"));
});

test("M9: what a complete parser finds in a command, the guard's reader finds, or it calls the command unclear", () => {
  const missed = corpus.flatMap((text) => {
    const oracle = oracleFinds(text);
    return (oracle === null ? [] : overlooked(text, oracle)).map((what) => `${text}: ${what}`);
  });
  assert.deepEqual(missed, []);
});

test("M9: no command of the corpus is called clear with a write that is not listed", () => {
  const missed = corpus.flatMap((text) => {
    const oracle = oracleFinds(text);
    return (oracle === null ? [] : unlisted(oracle, shellWrites(text, "/r"))).map((what) => `${text}: ${what}`);
  });
  assert.deepEqual(missed, []);
});

test("everyday commands that only look are clear: the tree need not be compared for them", () => {
  const clear = corpus.filter((text) => shellWrites(text, "/r").isClear);
  for (const text of [
    "ls -la src/ && cat package.json",
    "git status",
    "git diff HEAD~1 -- src/a.ts",
    "git log --oneline -10",
    'grep -rn "TODO" src/',
    'find . -name "*.ts" -not -path "./node_modules/*"',
    "sed -n '1,20p' src/a.ts",
    "awk '{print $1}' file.txt",
    "cat package.json | jq '.scripts'",
    "for f in *.ts; do echo $f; done",
  ])
    assert.ok(clear.includes(text), text);
  assert.ok(clear.length > corpus.length / 4, `${clear.length} of ${corpus.length}`);
});

/** What a shell takes for more than text, and commands that write. */
const pieces = [
  ..."'\"`\\$(){}[]<>|&;#*?~!=, \n".split(""),
  ...["$(", "${", "$((", "<(", ">(", "<<E\n", "<<'E'\n", "\nE\n", "&&", "||", ";;", ">>", ">|", "&>", "2>&1", "<<<"],
  ...[
    "$(cp e f)",
    "`cp e f`",
    "${x:-$(cp e f)}",
    "; cp e f",
    "| tee f",
    "> f",
    "&& rm f",
    "\ncp e f\n",
    "-o f",
    "-i",
    "--output=f",
  ],
  ...[
    "cd x && ",
    "bash -c '",
    "eval ",
    "if true; then ",
    "; fi",
    "do ",
    "; done",
    "function f { ",
    "f() { ",
    "; }",
    "case a in a) ",
    ";; esac",
  ],
];

function wrapped(by: string, text: string): string {
  return by.replace("_", () => text);
}

const mutated = fc
  .tuple(
    fc.constantFrom(...corpus),
    fc.array(
      fc.oneof(
        fc.record({ kind: fc.constant("insert" as const), at: fc.nat(400), piece: fc.constantFrom(...pieces) }),
        fc.record({ kind: fc.constant("delete" as const), at: fc.nat(400), length: fc.integer({ min: 1, max: 4 }) }),
        fc.record({
          kind: fc.constant("join" as const),
          sign: fc.constantFrom("; ", " && ", " | ", "\n", " & ", " || "),
          other: fc.constantFrom(...corpus),
        }),
        fc.record({
          kind: fc.constant("wrap" as const),
          by: fc.constantFrom(
            "echo $(_)",
            'echo "$(_)"',
            "(_)",
            "{ _; }",
            "cat <(_)",
            "echo `_`",
            "if _; then ls; fi",
            "cat <<E\n$(_)\nE\n",
          ),
        }),
      ),
      { minLength: 1, maxLength: 4 },
    ),
  )
  .map(([text, changes]) => {
    let now = text;
    for (const change of changes) {
      const at = "at" in change ? change.at % (now.length + 1) : 0;
      if (change.kind === "insert") now = now.slice(0, at) + change.piece + now.slice(at);
      else if (change.kind === "delete") now = now.slice(0, at) + now.slice(at + change.length);
      else if (change.kind === "join") now = now + change.sign + change.other;
      else now = wrapped(change.by, now);
    }
    return now;
  });

test("M9: no mutation of the corpus is called clear while the oracle finds a write that is not listed", () => {
  let compared = 0;
  fc.assert(
    fc.property(mutated, (text) => {
      const writes = shellWrites(text, "/r");
      const oracle = writes.isClear ? oracleFinds(text) : null;
      if (oracle === null) return;
      compared++;
      assert.deepEqual(overlooked(text, oracle), [], text);
      assert.deepEqual(unlisted(oracle, writes), [], text);
    }),
    { numRuns: 10_000 },
  );
  assert.ok(compared > 500, `only ${compared} were clear, and so compared`);
});

test("the comparison finds a command that was overlooked, and a write that is not listed", () => {
  const found = oracleFinds("ls > f; rm a");
  assert.ok(found !== null);
  assert.deepEqual(overlooked("ls", found), ["command rm a", "redirection > f"]);
  assert.deepEqual(unlisted(found, shellWrites("ls", "/r")), ["> f", "rm a"]);
  assert.deepEqual(unlisted(found, shellWrites("ls > f; rm a", "/r")), []);
});
