// Runs a script of this project on its own Node, and first brings in whatever that takes.
// Usage: node scripts/setup.mjs <script> [arguments...]
//
// package.json puts `exec` before it: npm signals the shell it started and not what that started, so a shell in
// between would die alone and leave the server running.
//
// This one file has to run on any Node from 20 on, before anything is installed: hence plain JavaScript, with
// nothing imported but what Node itself brings.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
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
if (!existsSync(join(root, script))) fail(`${script} is not there yet.`);
process.exitCode = await runHandingOverSignals(projectNode, [join(root, script), ...scriptArguments]);

/** The lock's content decides and not its age, since a checkout gives files new times without changing them. */
function isInstalled() {
  if (existsSync(stampFile)) return readFileSync(stampFile, "utf8") === lockDigest();
  // An install made by hand leaves no stamp. npm's own record of it does as well, if it is not older than the lock.
  const npmRecord = join(modules, ".package-lock.json");
  if (!existsSync(npmRecord) || statSync(npmRecord).mtimeMs < statSync(lockFile).mtimeMs) return false;
  if (!existsSync(projectNode)) return false;
  writeFileSync(stampFile, lockDigest());
  return true;
}

async function install() {
  say("installing dependencies with npm ci; the first time takes about half a minute");
  // Development dependencies are named, because Node itself is one, and NODE_ENV=production would leave it out.
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
  writeFileSync(stampFile, lockDigest());
}

/**
 * npm ci refuses a lock that leaves out optional packages, which is what a registry without the builds for every
 * platform produces. Only that is forgiven: any other difference between package.json and the lock is a mistake.
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
 * The package `node` fetches its binary in an install script. Where npm is set not to run those (`ignore-scripts`),
 * this one is run by name: without it there is nothing to run the project with.
 */
async function fetchProjectNode() {
  say("install scripts are off in this npm; fetching Node with the package's own script");
  const { code, output } = await capture("node", ["installArchSpecificPackage.js"], join(modules, "node"));
  if (code !== 0 || !existsSync(projectNode)) {
    process.stderr.write(output);
    fail("Node could not be fetched; the output is above.");
  }
  const link = join(modules, ".bin", "node");
  if (!existsSync(link)) symlinkSync(join("..", "node", "bin", "node"), link);
}

/** npm must not run on the Node it is about to replace, so the project's own binaries leave the path. */
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

/** The child ends first and this process after it, so that whoever waits for us has waited for it. */
function runHandingOverSignals(command, commandArguments) {
  return new Promise((resolve) => {
    const child = spawn(command, commandArguments, { stdio: "inherit" });
    process.on("SIGTERM", () => child.kill("SIGTERM"));
    process.on("SIGHUP", () => child.kill("SIGHUP"));
    // A terminal gives Ctrl-C to the whole group, the child included; a second one would read as impatience.
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
