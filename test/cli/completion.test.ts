/** Completion in real shells, at a real terminal: what the tab key puts into the line is what the program gets. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { binary, type Folder, makeFolder, type Server, start, startServer } from "./harness.ts";

let server: Server;
let folder: Folder;
const bin = () => join(folder.path, "bin");

before(async () => {
  server = await startServer();
  folder = makeFolder();
  mkdirSync(bin());
  writeFileSync(join(bin(), "leasehold"), `#!/bin/sh\nexec "${process.execPath}" "${binary}" "$@"\n`);
  chmodSync(join(bin(), "leasehold"), 0o755);
  const held = ["FILE:/shop/src/auth.ts", "FILE:/odd/$(touch pwned) `touch pwned`", "GPU:/rack-1/a100"];
  for (const [index, name] of held.entries()) {
    await server.json(["acquire", name, "--ttl", "5m", "--agent", ["alice", "bob", "carol"][index] ?? ""], {
      cwd: folder.path,
    });
  }
  await server.json(["tasks", "add", "code.review"]);
});

after(async () => {
  await server.stop();
  folder.remove();
});

interface Values {
  readonly candidates: readonly { readonly value: string; readonly words: string }[];
  readonly files: boolean;
}

async function values(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Values> {
  const options = { env: { LEASEHOLD_URL: server.url, ...env }, cwd: folder.path };
  const { code, stdout, stderr } = await start(["completion", "values", "--json", "--", ...words], options).ended;
  assert.equal(code, 0, stderr);
  assert.equal(stderr, "");
  return JSON.parse(stdout) as Values;
}

const texts = ({ candidates }: Values) => candidates.map(({ value }) => value);

test("3.19: resources, leases, agents, tasks, tenants and profiles are completed from the server, as the line names it", async () => {
  const { leases } = await server.json<{ readonly leases: readonly { readonly id: string }[] }>(["ls", "--leases"]);
  const { tasks } = await server.json<{ readonly tasks: readonly { readonly task_id: string }[] }>(["tasks", "ls"]);
  assert.deepEqual(texts(await values(["release", "lse_"])).toSorted(), leases.map(({ id }) => id).toSorted());
  assert.deepEqual(texts(await values(["ls", "--agent", ""])), ["alice", "bob", "carol"]);
  assert.deepEqual(texts(await values(["ls", "--agent=b"])), ["bob"]);
  assert.deepEqual(texts(await values(["transfer", leases[0]?.id ?? "", "c"])), ["carol"]);
  assert.deepEqual(texts(await values(["tasks", "show", ""])), [tasks[0]?.task_id]);
  assert.deepEqual(texts(await values(["work", "--type", "code"])), ["code.review"]);
  assert.deepEqual(texts(await values(["ls", "--tenant", "d"])), ["default"]);
  assert.deepEqual(await values(["run", "-s", "GPU:/"]), {
    candidates: [{ value: "GPU:/rack-1/a100", words: "MUTATES carol" }],
    files: false,
  });
  const nowhere = { LEASEHOLD_URL: "http://127.0.0.1:9" };
  assert.deepEqual(texts(await values(["ls", "--url", server.url, "--agent", "a"], nowhere)), ["alice"]);
  const profiles = join(folder.path, "profiles.json");
  writeFileSync(profiles, JSON.stringify({ prod: { url: server.url } }));
  assert.deepEqual(texts(await values(["ls", "--profile", ""], { LEASEHOLD_PROFILES: profiles })), ["prod"]);
});

test("3.19: values of closed lists are completed without a server, and names of files only where they are right", async () => {
  const nowhere = { LEASEHOLD_URL: "http://127.0.0.1:9" };
  assert.deepEqual(await values(["keys", "create", "--role", "s"], nowhere), {
    candidates: [{ value: "supervisor", words: "" }],
    files: false,
  });
  assert.deepEqual(texts(await values(["init", "claude", "g"], nowhere)), ["gemini", "git"]);
  assert.deepEqual(texts(await values(["ls", "--state", "H"], nowhere)), ["HELD"]);
  assert.deepEqual(texts(await values(["serve", "--log-level", "t"], nowhere)), ["trace"]);
  assert.deepEqual(await values(["tasks", "show", ""], nowhere), { candidates: [], files: false });
  assert.deepEqual(await values(["run", "src/"], nowhere), { candidates: [], files: true });
  assert.deepEqual(await values(["backup", ""], nowhere), { candidates: [], files: true });
  assert.deepEqual(await values(["run", "GPU:/a", "--", ""], nowhere), { candidates: [], files: true });
  assert.deepEqual(await values(["nonsense", ""], nowhere), { candidates: [], files: false });
});

/** The limit is 0.7 s; the rest is for the start of a process on a busy machine. */
const silentMsMax = 5_000;

test("with a server that is silent, away or refuses nothing is offered, nobody waits, and nothing is created", async (t) => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  t.after(() => silent.close());
  await new Promise((resolve) => silent.once("listening", resolve));
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : 0;
  const home = join(folder.path, "home");
  mkdirSync(home);
  const env = { HOME: home, XDG_CONFIG_HOME: home, XDG_STATE_HOME: home, XDG_RUNTIME_DIR: home };
  for (const url of [`http://127.0.0.1:${port}`, "http://127.0.0.1:9", "not an address", "https://127.0.0.1:9"]) {
    const began = performance.now();
    assert.deepEqual(await values(["release", ""], { ...env, LEASEHOLD_URL: url }), { candidates: [], files: false });
    assert.ok(performance.now() - began < silentMsMax, url);
  }
  assert.deepEqual(texts(await values(["release", ""], { ...env, LEASEHOLD_KEY: "lh_wrong" })), []);
  assert.deepEqual(readdirSync(home, { recursive: true }), []);
});

/** What each shell is given after its script: the program's place is taken by one that shows its arguments. */
const shells = {
  bash: {
    args: ["--norc", "--noprofile", "-i"],
    load: "source <(leasehold completion bash)",
    show: `leasehold() { printf '<%s>' "$@"; echo; }`,
  },
  zsh: {
    args: ["-f", "-i"],
    load: "autoload -Uz compinit; compinit -u -D; leasehold completion zsh > _script; source ./_script",
    show: `leasehold() { printf '<%s>' "$@"; echo }`,
  },
  fish: {
    args: ["--no-config", "-i"],
    load: "leasehold completion fish | source",
    show: "function leasehold; printf '<%s>' $argv; echo; end",
  },
} as const;

const hasProgram = (name: string) => {
  try {
    execFileSync("sh", ["-c", `command -v ${name}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};

/** Types the lines at a terminal of its own, and returns what the shell wrote there. */
async function typeInto(shell: keyof typeof shells, lines: readonly string[]): Promise<string> {
  const { args, load, show } = shells[shell];
  const child = spawn("script", ["-qfec", `${shell} ${args.join(" ")}`, "/dev/null"], {
    cwd: folder.path,
    env: {
      PATH: `${bin()}:${process.env["PATH"]}`,
      HOME: folder.path,
      TERM: "dumb",
      PS1: "$ ",
      LEASEHOLD_URL: server.url,
    },
    stdio: ["pipe", "pipe", "inherit"],
    timeout: 120_000,
  });
  const closed = once(child, "close");
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const wrote = async (text: string) => {
    while (!output.includes(text) && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(output.includes(text), `${shell} ended: ${output}`);
  };
  try {
    child.stdin.write(`${load}\n${show}\necho lo''aded\n`);
    await wrote("loaded");
    for (const [index, line] of lines.entries()) {
      child.stdin.write(`${line}\necho do''ne-${index}\n`);
      await wrote(`done-${index}`);
    }
  } finally {
    child.stdin.end("exit\n");
    await closed;
  }
  return output;
}

for (const shell of ["bash", "zsh", "fish"] as const) {
  const isHere = hasProgram(shell) && hasProgram("script");
  test(`3.19: the tab key in ${shell} completes commands, flags, names with colons and values, and runs none of them`, {
    skip: isHere ? false : `${shell} or script(1) is not on this machine`,
  }, async () => {
    const output = await typeInto(shell, [
      "leasehold tran\t",
      "leasehold ls --wait\t",
      "leasehold ls --agent al\t",
      "leasehold ls --agent=bo\t",
      "leasehold run FILE:/shop/src/\t",
      "leasehold revoke --prefix GPU:/ra\t",
      "leasehold keys create --role sup\t",
      "leasehold run FILE:/odd/\t",
    ]);
    const shown = stripVTControlCharacters(output);
    const expected = [
      "<transfer>",
      "<ls><--waiters>",
      "<ls><--agent><alice>",
      "<ls><--agent=bob>",
      "<run><FILE:/shop/src/auth.ts>",
      "<revoke><--prefix><GPU:/rack-1/a100>",
      "<keys><create><--role><supervisor>",
      "<run><FILE:/odd/$(touch pwned) `touch pwned`>",
    ];
    for (const text of expected) assert.ok(shown.includes(text), `${shell} lacks ${text} in ${shown}`);
    assert.ok(!readdirSync(folder.path).includes("pwned"), `${shell} ran a part of a name`);
  });
}
