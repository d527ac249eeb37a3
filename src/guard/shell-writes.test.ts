import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readShell } from "./shell-words.ts";
import { shellWrites } from "./shell-writes.ts";

const cwd = "/r";

/** "M path", "D path", "R from to", "C to" with "/**" for trees; "?" if it may do more than that. */
function said(command: string): readonly string[] {
  const found = shellWrites(command, cwd);
  const name = ({ path, isTree }: { readonly path: string; readonly isTree: boolean }) =>
    `${path}${isTree ? "/**" : ""}`;
  return [
    ...found.mutated.map((path) => `M ${name(path)}`),
    ...found.deleted.map((path) => `D ${name(path)}`),
    ...found.renamed.map(([from, to]) => `R ${name(from)} ${name(to)}`),
    ...found.copied.map(([from, to]) => `C ${name(from)} ${name(to)}`),
    ...found.git.flatMap(({ asks }) => (asks ?? []).map((ask) => `git ${ask.join(" ")}`)),
    ...(found.isClear ? [] : ["?"]),
  ];
}

test("writes are read from the text of a command", () => {
  const cases: readonly (readonly [command: string, ...writes: readonly string[]])[] = [
    ["echo hi > a.txt", "M /r/a.txt"],
    ["echo hi >> 'my file' 2>&1", "M /r/my file"],
    ["echo hi 2>err.log >/dev/null", "M /r/err.log"],
    ["cat <<EOF > f.ts\nrm -rf x > y\nEOF\ntouch g", "M /r/f.ts", "M /r/g"],
    ["sed -i 's/a/b/' a.ts b.ts", "M /r/a.ts", "M /r/b.ts"],
    ["sed -i -e 's/a/b/' -e 's|x|y|g' a.ts", "M /r/a.ts"],
    ["sed -i.bak -e 's/a/b/' a.ts", "M /r/a.ts", "?"],
    ["sed -n 1,5p a.ts"],
    ["perl -pi -e 's/a/b/' a.ts", "M /r/a.ts", "?"],
    ["ls | tee out.txt", "M /r/out.txt"],
    ["mv a.ts b.ts", "R /r/a.ts /r/b.ts"],
    ["mv a.ts b.ts lib/", "R /r/a.ts /r/lib/**", "R /r/b.ts /r/lib/**"],
    ["cp a.ts src/", "C /r/a.ts /r/src/**"],
    ["cp -t src a.ts", "C /r/a.ts /r/src/**"],
    ["rm -f a.ts", "D /r/a.ts"],
    ["rm -rf build dist", "D /r/build/**", "D /r/dist/**"],
    ["cd src && rm a.ts; ls", "D /r/src/a.ts"],
    ["cd src && rm a.ts; rm b.ts", "D /r/src/a.ts", "D /r/src/b.ts", "?"],
    ["cd src; rm a.ts", "D /r/src/a.ts", "?"],
    ["ls | cd src && rm a.ts", "D /r/src/a.ts", "?"],
    ["(cd src && rm a.ts); rm b.ts", "D /r/src/a.ts", "D /r/b.ts"],
    ["sudo -u me env A=1 rm a.ts", "D /r/a.ts"],
    ["timeout 5 rm a.ts", "D /r/a.ts"],
    ["bash -c 'rm a.ts'", "D /r/a.ts"],
    ["if true; then rm a.ts; fi", "D /r/a.ts"],
    ["echo $(rm a.ts)", "D /r/a.ts"],
    ["echo `rm a.ts`", "D /r/a.ts"],
    ["rm src/*.ts", "D /r/src/*.ts"],
    ["rm src/[ab].ts", "D /r/src/?.ts"],
    ["touch {a,b}.ts", "M /r/*.ts"],
    ["dd if=x of=y.bin", "M /r/y.bin"],
    ["curl -o page.html http://x", "M /r/page.html"],
    ["A=1 B=2"],
    ["ls -la && cat a.ts | grep x"],
    ["echo hi # > a.txt"],
    ["LANG=C truncate -s 0 a.log", "M /r/a.log"],
    ["LD_PRELOAD=./x.so truncate -s 0 a.log", "M /r/a.log", "?"],
    ["./bin/touch a.log", "M /r/a.log", "?"],
    ["chmod +x run.sh", "M /r/run.sh"],
    ["curl -fsSLo page.html http://x", "M /r/page.html"],
    ["curl -O http://x", "?"],
    ["sort a.txt -osrc/a.ts", "M /r/src/a.ts"],
    ["find . -name '*.ts' -exec grep -l x {} +"],
    ["find . -name '*.tmp' -delete", "M /r/**", "?"],
    ["npm test", "?"],
    ["git ls-files | xargs rm -f", "?"],
    ["source ./script.sh", "?"],
    ["rm $FILE", "?"],
    ['python3 -c \'open("a","w")\'', "?"],
    ["echo 'open", "?"],
  ];
  for (const [command, ...writes] of cases) assert.deepEqual(said(command), writes, command);
});

test("what git does is asked of git, and what it only looks at is let be", () => {
  const changed = "git diff --name-only --no-renames -z HEAD";
  const cases: readonly (readonly [command: string, ...writes: readonly string[]])[] = [
    ["git status && git log -1 && git diff"],
    ["git add -A"],
    ["git push", "?"],
    ["git checkout -- a.ts", "git ls-files -z -- a.ts", "?"],
    ["git restore a.ts", "git ls-files -z -- a.ts"],
    ["git restore --staged a.ts"],
    ["git checkout main", `${changed} main`, "git ls-files -z -- main", "?"],
    ["git checkout -b fresh", "?"],
    ["git switch main", `${changed} main`, "?"],
    ["git reset --hard", changed, "?"],
    ["git reset a.ts"],
    ["git stash", changed, "?"],
    ["git stash list"],
    ["git stash pop", "git stash show --name-only -z", "?"],
    ["git apply fix.patch", "git apply --numstat -z fix.patch", "?"],
    ["git rm a.ts", "D /r/a.ts"],
    ["git mv a.ts b.ts", "R /r/a.ts /r/b.ts"],
    ["git -C sub rm a.ts", "D /r/sub/a.ts"],
    ["git commit -m 'a > b'", "?"],
    ["git frobnicate", "?"],
  ];
  for (const [command, ...writes] of cases) assert.deepEqual(said(command), writes, command);
});

test("what is claimed is to be leased, and counts neither as written nor as read", () => {
  const { claimed, mutated, named, isClear } = shellWrites("leasehold guard claim src/a.ts lib/", cwd);
  assert.deepEqual(claimed, [
    { path: "/r/src/a.ts", isTree: false },
    { path: "/r/lib", isTree: true },
  ]);
  assert.deepEqual([mutated, named, isClear], [[], [], true]);
});

test("files that a command names count as read", () => {
  assert.deepEqual(shellWrites("cat src/a.ts; head -n 5 b.ts < c.ts", cwd).named, [
    "/r/src/a.ts",
    "/r/c.ts",
    "/r/-n",
    "/r/5",
    "/r/b.ts",
  ]);
});

test("any text is read to its end, or said to be unreadable; nothing is thrown", () => {
  const pieces = [
    "'",
    '"',
    "`",
    "$(",
    ")",
    "(",
    "{",
    "}",
    ">",
    "<<",
    "<",
    "|",
    "&",
    ";",
    "\n",
    "\\",
    "$",
    "*",
    " ",
    "rm",
    "a",
    "EOF",
    "#",
    "=",
    "!",
  ];
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 3 })), { maxLength: 40 }),
      (parts) => {
        const text = parts.join("");
        const read = readShell(text);
        assert.ok(read === null || Array.isArray(read.steps));
        shellWrites(text, cwd);
      },
    ),
    { numRuns: 2_000 },
  );
});

test("what is nested deeply or very long is not read, and said to be unclear", () => {
  assert.equal(shellWrites(`${"$(".repeat(5_000)}x${")".repeat(5_000)}`, cwd).isClear, false);
  assert.equal(shellWrites(`echo ${"x".repeat(300_000)}`, cwd).isClear, false);
});
