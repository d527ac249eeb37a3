/** Runs the server; its settings are the server's own. */
import { helpText } from "../../server/config/help.ts";
import type { Command } from "../command.ts";
import { version } from "../version.ts";

export const serveCommand: Command = {
  name: "serve",
  summary: "runs the server",
  usage: "[--port N] [--data DIR] [--host ADDRESS] …",
  words: [0, 0],
  settings: true,
  get about() {
    const text = helpText(version);
    return text
      .slice(text.indexOf("Flags  "), text.indexOf("Examples"))
      .trimEnd()
      .replace(/^ {2}--help.*\n/m, "");
  },
  flags: {},
  examples: [
    ["leasehold serve", "on 127.0.0.1:7117, with its data in ./data"],
    ["leasehold serve --port 7200 --data /var/lib/leasehold", "elsewhere"],
    ["leasehold serve --store memory", "to try things out; all is forgotten at the end"],
  ],
  run: async ({ words, environment }) => {
    // The data holds the secret that agents' tokens are made with: it is for this user alone.
    process.umask(0o077);
    const { runCommand } = await import("../../server/commands/run.ts");
    return runCommand(["serve", ...words], environment);
  },
};
