#!/usr/bin/env node
// Runs on any Node, old ones too, to say which one is needed; the command line itself needs what Node 24 brings.
"use strict";
var major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    "leasehold: the command line needs Node 24 or later, and this is " +
      process.versions.node +
      "; install a newer one (the SDK works from Node 20)\n",
  );
  process.exit(2);
}
var path = require("node:path");
var args = process.argv.slice(2);
// A coding agent waits for its hooks at every step: they start without the rest of the command line.
var isHook = args[0] === "guard" && args[1] === "hook" && args.indexOf("--help") === -1 && args.indexOf("-h") === -1;
var source = path.join(__dirname, "../src", isHook ? "guard/hook-main.ts" : "cli/main.ts");
// In the repository the source is run as it is; the package has it compiled, and the hook in one file.
var isSource = require("node:fs").existsSync(source);
var built = path.join(__dirname, "../dist", isHook ? "guard/hook.cjs" : "cli/main.js");
// What was compiled once need not be again: starts are quicker. The cache is code that will be run, so it lies where the
// code lies, and not where others can write; where that cannot be written, there is none.
require("node:module").enableCompileCache(path.join(__dirname, "../node_modules/.cache/leasehold"));
if (isHook && !isSource) require(built).main(args.slice(2), process.env);
else
  import(require("node:url").pathToFileURL(isSource ? source : built).href).then((cli) =>
    cli.main(isHook ? args.slice(2) : args, process.env),
  );
