// Runs a script of this project on the project's own Node, and first installs what is missing.
// Usage: node scripts/setup.mjs <script> [arguments...]
//
// package.json puts `exec` before it: npm signals only the shell that it started, so a shell in between would end alone
// and leave the server running.
//
// This file must run on any Node from 20 on, before anything is installed: plain JavaScript that imports only Node's
// own
// modules.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const lockFile = join(root, "package-lock.json");
const stampFile = join(modules, ".leasehold-setup");
const projectNode = join(modules, "node", "bin", "node");

const [script, ...scriptArguments] = process.argv.slice(2);
if (script === undefined) fail("name a script to run: node scripts/setup.mjs <script> [arguments...]");

if (!isInstalled()) await install();
if (!existsSync(projectNode)) await fetchProjectNode();
if (!existsSync(join(root, script))) fail(`${script} does not exist.`);
process.exitCode = await runHandingOverSignals(projectNode, [join(root, script), ...scriptArguments]);

/** The lock file's content decides and not its age, because a checkout changes times without changing content. */
function isInstalled() {
  if (existsSync(stampFile)) return readFileSync(stampFile, "utf8") === lockDigest();
  // A manual install leaves no stamp. npm's own record of it counts too, if it is not older than the lock file.
  const npmRecord = join(modules, ".package-lock.json");
  if (!existsSync(npmRecord) || statSync(npmRecord).mtimeMs < statSync(lockFile).mtimeMs) return false;
  if (!existsSync(projectNode)) return false;
  writeStamp();
  return true;
}

async function install() {
  say("installing dependencies with npm ci; the first time takes about half a minute");
  // Development dependencies are included explicitly: Node itself is one, and NODE_ENV=production would omit it.
  const options = ["--include=dev", "--no-audit", "--no-fund"];
  let result = await capture("npm", ["ci", ...options], root);
  if (result.code !== 0 && onlyForeignPlatformsMissing(result.output)) {
    say("the lock file lacks packages of other platforms; npm install takes the same versions without them");
    result = await capture("npm", ["install", "--no-save", ...options], root);
  }
  if (result.code !== 0) {
    process.stderr.write(result.output);
    fail("npm could not install the dependencies; its output is above.");
  }
  writeStamp();
}

/** As a new file: in a copy of node_modules that was made of hard links, the old one is that of every copy. */
function writeStamp() {
  rmSync(stampFile, { force: true });
  writeFileSync(stampFile, lockDigest());
}

/**
 * npm ci refuses a lock file without all optional packages, which is what a registry without every platform's build
 * produces. Only this is accepted: any other difference between package.json and the lock file is an error.
 */
function onlyForeignPlatformsMissing(output) {
  const locked = Object.values(JSON.parse(readFileSync(lockFile, "utf8")).packages);
  const optional = new Set(locked.flatMap((entry) => Object.keys(entry.optionalDependencies ?? {})));
  const complaints = output.split("\n").filter((line) => /^npm (error|ERR!) (Missing|Invalid):/.test(line));
  return (
    complaints.length > 0 &&
    complaints.every((line) => optional.has(/Missing: (@?[^@\s]+)@\S* from lock file/.exec(line)?.[1]))
  );
}

/**
 * The package `node` downloads its binary in an install script. Where npm does not run those (`ignore-scripts`), this
 * one is run explicitly, because the project cannot run without it.
 */
async function fetchProjectNode() {
  say("npm does not run install scripts here; downloading Node with the package's own script");
  const { code, output } = await capture("node", ["installArchSpecificPackage.js"], join(modules, "node"));
  if (code !== 0 || !existsSync(projectNode)) {
    process.stderr.write(output);
    fail("Node could not be downloaded; the output is above.");
  }
  const link = join(modules, ".bin", "node");
  if (!existsSync(link)) symlinkSync(join("..", "node", "bin", "node"), link);
}

/** npm must not run on the Node that it is about to replace, so the project's own binaries are removed from PATH. */
function capture(command, commandArguments, cwd) {
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(modules));
  return new Promise((resolve) => {
    const child = spawn(command, commandArguments, {
      cwd,
      env: { ...process.env, PATH: path.join(delimiter) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("error", (error) => resolve({ code: 1, output: `${output}${error.message}\n` }));
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

/** The child ends first and this process after it, so that waiting for this process includes the child. */
function runHandingOverSignals(command, commandArguments) {
  return new Promise((resolve) => {
    const child = spawn(command, commandArguments, { stdio: "inherit" });
    process.on("SIGTERM", () => child.kill("SIGTERM"));
    process.on("SIGHUP", () => child.kill("SIGHUP"));
    // A terminal sends Ctrl-C to the whole group, including the child, which would treat a second one as impatience.
    process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
    child.on("error", (error) => fail(`${command} did not start: ${error.message}`));
    child.on("close", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

function lockDigest() {
  return createHash("sha256").update(readFileSync(lockFile)).digest("hex");
}

function say(sentence) {
  process.stderr.write(`leasehold: ${sentence}\n`);
}

function fail(sentence) {
  say(sentence);
  process.exit(1);
}
