/** The package as users get it: packed by npm and used in a project. */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "../../scripts/build.ts";

export interface Ended {
  readonly code: number | NodeJS.Signals;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export function run(command: string, args: readonly string[], { cwd, env = {} }: RunOptions = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      ...(cwd !== undefined && { cwd }),
    });
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString()));
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code: code ?? signal ?? "SIGKILL", ...output }));
  });
}

/** Builds and packs; returns the archive and the names of its files. */
export async function pack(folder: string): Promise<{ readonly archive: string; readonly files: readonly string[] }> {
  if ((await build()) !== 0) throw new Error("the build failed");
  const { code, stdout, stderr } = await run("npm", [
    "pack",
    "--ignore-scripts",
    "--json",
    "--pack-destination",
    folder,
  ]);
  if (code !== 0) throw new Error(`npm pack failed: ${stderr}`);
  const [packed] = JSON.parse(stdout) as readonly { filename: string; files: readonly { path: string }[] }[];
  if (packed === undefined) throw new Error("npm pack says nothing");
  return { archive: join(folder, packed.filename), files: packed.files.map(({ path }) => path) };
}

/** As npm would install it, but with the dependencies of this checkout, so that no network is needed. */
export async function unpackInto(project: string, archive: string): Promise<void> {
  const modules = join(project, "node_modules");
  mkdirSync(join(modules, "leasehold"), { recursive: true });
  const { code, stderr } = await run("tar", [
    "-xzf",
    archive,
    "--strip-components=1",
    "-C",
    join(modules, "leasehold"),
  ]);
  if (code !== 0) throw new Error(`tar failed: ${stderr}`);
  for (const name of readdirSync("node_modules")) {
    if (!name.startsWith(".")) symlinkSync(resolve("node_modules", name), join(modules, name));
  }
}

/** A user's program, in JavaScript and with types. */
export function writeProgram(project: string): void {
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
  for (const name of ["program.mjs", "typed.ts", "tsconfig.json"])
    cpSync(`test/package/user/${name}`, join(project, name));
}
