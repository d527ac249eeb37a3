/** A scripted fleet to look at, on a server of its own. */
import { openBrowser } from "../browser.ts";
import type { Command } from "../command.ts";
import { plain } from "../plain-text.ts";
import { untilStopped } from "../stop-signals.ts";

const portDefault = 7118;

const demoCommand: Command = {
  name: "demo",
  summary: "starts a server with a scripted fleet, and opens its page",
  usage: "[--port N] [--for TIME] [--print]",
  about: `Twelve agents edit one repository and take turns; one crashes, one wakes up too late, one needs a broken GPU. Workers do
tasks, one of them finishes too late, and one asks a person. The server is another one than yours, on port ${portDefault}, and
its data is deleted at the end.`,
  flags: {
    port: { sign: "N", words: `of the demo's server; ${portDefault} if left out, 0 for any that is free` },
    for: { sign: "TIME", words: "how long it plays; until Ctrl-C if left out" },
    seed: { sign: "N", words: "another one gives another order of events; 1 if left out" },
    print: { words: "print the address and open no browser" },
  },
  offline: true,
  examples: [
    ["leasehold demo", "see a fleet at work in the browser"],
    ["leasehold demo --print --for 1m", "for a minute, without a browser"],
  ],
  run: async (call) => {
    const { out } = call;
    const lengthMs = call.durationMs("for");
    const { playDemo } = await import("../../demo/demo.ts");
    const began = performance.now();
    await untilStopped(async (stopped) => {
      const signal = lengthMs === null ? stopped : AbortSignal.any([stopped, AbortSignal.timeout(lengthMs)]);
      await playDemo({
        port: call.integer("port", 0, 65_535) ?? portDefault,
        seed: call.integer("seed") ?? 1,
        signal,
        say: (sentence) => {
          const at = `${Math.round((performance.now() - began) / 1_000)}s`;
          out.show({ at, sentence }, () => `${out.paint.dim(at.padStart(5))}  ${plain(sentence)}`);
        },
        begun: (url) => {
          out.show({ url }, () =>
            [
              `A fleet of twelve agents is at work: ${out.paint.bold(`${url}/`)}`,
              `In a terminal: leasehold top --url ${url}. Ctrl-C ends it, and nothing is left.`,
            ].join("\n"),
          );
          if (!call.isSet("print") && !out.isJson && process.stdout.isTTY === true) void openBrowser(`${url}/`);
        },
      });
    });
    return undefined;
  },
};

export const commands: readonly Command[] = [demoCommand];
