/** Help, and completion for shells, generated from the tables that the line is parsed by. */
import type { Command } from "../command.ts";
import { complete } from "../completing.ts";
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
  {
    name: "completion values",
    summary: "prints what may stand in place of a line's last word, for the completion of shells",
    usage: "-- WORD…",
    about: `The first line says whether names of files are right too; then each line has a value, a tab, and words about it.
A server that does not answer within 0.7 s has none.`,
    wraps: true,
    offline: true,
    examples: [["leasehold completion values -- release lse_", "live leases, for a script of your own"]],
    run: async ({ wrapped, environment, cwd, out, commands: under }) => {
      const { candidates, hasFiles } = await complete(wrapped, under, environment, cwd);
      const lines = candidates.map(({ value, words }) => `${value}\t${words}`);
      out.show({ candidates, files: hasFiles }, () => [hasFiles ? "files" : "values", ...lines].join("\n"));
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
