/** Completion for shells, made of the same tables that the line is read by. */

import type { Command } from "../command.ts";
import { completionScript, shells } from "../completion-scripts.ts";
import { exitCodes } from "../exit-codes.ts";
import { UsageProblem } from "../problem.ts";

export const completionCommand: Command = {
  name: "completion",
  summary: "prints completion for bash, zsh or fish",
  usage: "bash|zsh|fish",
  words: [1, 1],
  flags: {},
  examples: [
    ["source <(leasehold completion bash)", "in ~/.bashrc"],
    ["leasehold completion zsh > ~/.zsh/completions/_leasehold", "in a folder of fpath"],
    ["leasehold completion fish > ~/.config/fish/completions/leasehold.fish", "for fish"],
  ],
  run: async ({ words: [word], out }) => {
    const shell = shells.find((one) => one === word);
    if (shell === undefined) throw new UsageProblem(`"${word}" is no shell that is known; give bash, zsh or fish`);
    const { commands } = await import("../commands.ts");
    const script = completionScript(shell, commands);
    out.show({ shell, script }, () => script);
    return exitCodes.done;
  },
};
