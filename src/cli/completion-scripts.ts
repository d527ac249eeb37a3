/** The scripts that shells complete by: plain word lists, so that a press of the tab key starts nothing. */
import { sharedFlags } from "./arguments.ts";
import type { Command, Flags } from "./command.ts";

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

interface Entry {
  readonly name: string;
  readonly summary: string;
  readonly flags: Flags;
}

export function completionScript(shell: Shell, commands: readonly Command[]): string {
  const entries = commands.map((command) => {
    const { name, summary, flags } = command;
    return { name, summary, flags: { ...sharedFlags(command), ...flags } };
  });
  return scripts[shell](entries);
}

const flagWords = (flags: Flags) =>
  Object.entries(flags).flatMap(([name, { short }]) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]);

const firstWords = (entries: readonly Entry[]) => [...new Set(entries.map(({ name }) => name.split(" ")[0] ?? name))];

/** The second words that a first one takes. */
const secondWords = (entries: readonly Entry[], first: string) =>
  entries.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));

const scripts: Readonly<Record<Shell, (entries: readonly Entry[]) => string>> = { bash, zsh, fish };

const groupsIn = (entries: readonly Entry[]) =>
  firstWords(entries).filter((first) => secondWords(entries, first).length > 0);

const summaryOf = (entries: readonly Entry[], first: string) =>
  (entries.find(({ name }) => name === first) ?? entries.find(({ name }) => name.startsWith(`${first} `)))?.summary ??
  "";

function bash(entries: readonly Entry[]): string {
  const flagCases = entries.map(({ name, flags }) => `    "${name}") flags="${flagWords(flags).join(" ")}" ;;`);
  const groupCases = groupsIn(entries).map(
    (first) => `      ${first}) seconds="${secondWords(entries, first).join(" ")}" ;;`,
  );
  return `# Completion of leasehold for bash: source <(leasehold completion bash)
_leasehold() {
  local word="\${COMP_WORDS[COMP_CWORD]}" first="\${COMP_WORDS[1]}" name flags="" seconds=""
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "${firstWords(entries).join(" ")}" -- "$word"))
    return
  fi
  local i
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ "\${COMP_WORDS[i]}" == "--" ]]; then
      compopt -o default 2>/dev/null
      return
    fi
  done
  name="$first"
  case "$first" in
${groupCases.join("\n")}
  esac
  if [[ -n "$seconds" && " $seconds " == *" \${COMP_WORDS[2]} "* && COMP_CWORD -gt 2 ]]; then
    name="$first \${COMP_WORDS[2]}"
  fi
  case "$name" in
${flagCases.join("\n")}
  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  else
    ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W "$seconds" -- "$word"))
    COMPREPLY+=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _leasehold leasehold
`;
}

function zsh(entries: readonly Entry[]): string {
  const quote = (text: string) => text.replaceAll("'", "'\\''").replaceAll(":", "\\:");
  const tops = firstWords(entries).map((first) => `    '${first}:${quote(summaryOf(entries, first))}'`);
  const groupCases = groupsIn(entries).map(
    (first) => `      ${first}) seconds=(${secondWords(entries, first).join(" ")}) ;;`,
  );
  const flagCases = entries.map(({ name, flags }) => `    '${name}') flags=(${flagWords(flags).join(" ")}) ;;`);
  return `#compdef leasehold
# Completion of leasehold for zsh: put it into a folder of fpath as _leasehold, or source it after compinit.
_leasehold() {
  local -a commands seconds flags
  local name
  commands=(
${tops.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  if (( \${words[(I)--]} > 0 && \${words[(I)--]} < CURRENT )); then
    _default
    return
  fi
  name="$words[2]"
  case "$words[2]" in
${groupCases.join("\n")}
  esac
  if (( \${#seconds} > 0 && CURRENT > 3 && \${seconds[(I)$words[3]]} > 0 )); then
    name="$words[2] $words[3]"
  fi
  case "$name" in
${flagCases.join("\n")}
  esac
  if [[ "$words[CURRENT]" == -* ]]; then
    compadd -- $flags
  else
    (( CURRENT == 3 )) && compadd -- $seconds
    _files
  fi
}
if [[ "$funcstack[1]" == _leasehold ]]; then _leasehold "$@"; else compdef _leasehold leasehold; fi
`;
}

function fish(entries: readonly Entry[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = ["# Completion of leasehold for fish", "complete -c leasehold -f -n '__fish_use_subcommand'"];
  for (const first of firstWords(entries)) {
    lines.push(`complete -c leasehold -n '__fish_use_subcommand' -a ${first} -d ${quote(summaryOf(entries, first))}`);
    const seconds = secondWords(entries, first);
    const none = `__fish_seen_subcommand_from ${first}; and not __fish_seen_subcommand_from ${seconds.join(" ")}`;
    for (const second of seconds) {
      const found = entries.find(({ name }) => name === `${first} ${second}`);
      lines.push(`complete -c leasehold -n '${none}' -a ${second} -d ${quote(found?.summary ?? "")}`);
    }
  }
  for (const { name, flags } of entries) {
    const [first = "", second] = name.split(" ");
    const seen = `__fish_seen_subcommand_from ${first}${second === undefined ? "" : `; and __fish_seen_subcommand_from ${second}`}`;
    for (const [flag, { short, sign, words }] of Object.entries(flags)) {
      const parts = [
        `-l ${flag}`,
        ...(short === undefined ? [] : [`-s ${short}`]),
        ...(sign === undefined ? [] : ["-r"]),
      ];
      lines.push(`complete -c leasehold -n '${seen}' ${parts.join(" ")} -d ${quote(words)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}
