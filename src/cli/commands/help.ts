/** Help, and completion for shells, generated from the tables that the line is parsed by. */
import type { Command } from "../command.ts";
import { completionScript, shells } from "../completion-scripts.ts";
import { UsageProblem } from "../problem.ts";

export const commands: readonly Command[] = [
  {
    name: "completion",
    summary: "prints completion for bash, zsh or fish",
    usage: "bash|zsh|fish",
    words: [1, 1],
    offline: true,
    examples: [
      ["source <(leasehold completion bash)", "in ~/.bashrc"],
      ["leasehold completion zsh > ~/.zsh/completions/_leasehold", "in a folder of fpath"],
      ["leasehold completion fish > ~/.config/fish/completions/leasehold.fish", "for fish"],
    ],
    run: async ({ word, out, commands: all }) => {
      const shell = shells.find((one) => one === word);
      if (shell === undefined) throw new UsageProblem(`unknown shell "${word}"; give bash, zsh or fish`);
      const script = completionScript(shell, await all());
      out.show({ shell, script }, () => script);
    },
  },
  // main.ts answers it before any command is run; this entry is for the list and for completion.
  {
    name: "help",
    summary: "shows this, or the help of one command",
    usage: "[COMMAND]",
    words: [0, 2],
    offline: true,
    examples: [["leasehold help run", "the same as `leasehold run --help`"]],
    run: () => Promise.resolve(undefined),
  },
];
