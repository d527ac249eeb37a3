/** A real git repository with the guards installed, and a real server for it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stageHook } from "../../scripts/hook-bundle.ts";
import { startServer } from "../../src/server/start.ts";

const binary = fileURLToPath(new URL("../../bin/leasehold.cjs", import.meta.url));

export interface Place {
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  read(file: string): string;
  write(file: string, text: string): void;
  /** The command that Claude Code would run at this event. */
  command(event: string): string;
  /** The command line, as an MCP entry starts it. */
  program(...args: readonly string[]): readonly string[];
  resource(file: string): string;
  remove(): Promise<void>;
}

export async function makePlace(files: readonly string[], settings: object): Promise<Place> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "leasehold-fleet-")));
  const root = join(folder, "fleet");
  mkdirSync(root);
  const server = await startServer({
    port: 0,
    data: join(folder, "data"),
    logLevel: "silent",
    shutdownTimeoutMs: 1_000,
  });
  const { PATH = "" } = process.env;
  const env = {
    PATH,
    HOME: folder,
    LEASEHOLD_URL: server.address.url,
    LEASEHOLD_STATE: join(folder, "state"),
    CLAUDE_PROJECT_DIR: root,
  };
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=fleet", "-c", "user.email=fleet@example.com", ...args], {
      cwd: root,
      env,
      stdio: "ignore",
    });
  git("init", "-q", "-b", "main");
  for (const file of files) writeFileSync(join(root, file), "");
  writeFileSync(join(root, ".leasehold.json"), JSON.stringify({ repository: "fleet", ...settings }));
  git("add", ".");
  git("commit", "-qm", "first");
  const program = stageHook(join(folder, "package"));
  const install = ["guard", "install", "claude", "git", "--command", program];
  execFileSync(process.execPath, [binary, ...install], { cwd: root, env, stdio: "ignore" });
  const { hooks } = JSON.parse(readFileSync(join(root, ".claude/settings.json"), "utf8")) as {
    readonly hooks: Readonly<Record<string, readonly { readonly hooks: readonly { readonly command: string }[] }[]>>;
  };
  return {
    root,
    env,
    read: (file) => readFileSync(join(root, file), "utf8"),
    write: (file, text) => writeFileSync(join(root, file), text),
    command: (event) => hooks[event]?.[0]?.hooks[0]?.command ?? "",
    program: (...args) => [process.execPath, binary, ...args],
    resource: (file) => `FILE:/fleet/${file}`,
    async remove() {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
