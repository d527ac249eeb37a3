/**
 * The scripts that shells complete by. Commands and flags are plain word lists, so that completing them starts nothing.
 * Values come from `leasehold completion values`: a first line that says whether names of files are right too, then a
 * value and words about it on each line. They are what other agents chose: no shell may expand them.
 */
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

/**
 * Bash splits a word at `:`, `=` and `@`, and replaces only what follows the last of them. So the words are put
 * together again, and what a value shares with the part before is cut off.
 */
function bash(entries: readonly Entry[]): string {
  const flagCases = entries.map(({ name, flags }) => `    "${name}") flags="${flagWords(flags).join(" ")}" ;;`);
  const groupCases = groupsIn(entries).map(
    (first) => `    ${first}) seconds="${secondWords(entries, first).join(" ")}" ;;`,
  );
  return `# Completion of leasehold for bash: source <(leasehold completion bash)
_leasehold_values() {
  local word="$1" typed="$1" lead="" breaks="" cut="" mark value quoted
  shift
  if [[ "$word" == --*=* ]]; then
    typed="\${word#*=}"
    [[ "$COMP_WORDBREAKS" == *=* ]] || lead="\${word%%=*}="
  fi
  for mark in : = @; do
    [[ "$COMP_WORDBREAKS" == *"$mark"* ]] && breaks+="$mark"
  done
  [[ -n "$breaks" ]] && cut="\${typed%"\${typed##*[$breaks]}"}"
  {
    read -r mark
    while IFS=$'\\t' read -r value _; do
      printf -v quoted '%q' "\${value#"$cut"}"
      COMPREPLY+=("$lead$quoted")
    done
  } < <(command leasehold completion values -- "$@" 2>/dev/null)
  if [[ "$mark" == files ]]; then
    ((\${#COMPREPLY[@]} == 0)) && compopt -o filenames 2>/dev/null
    while IFS= read -r value; do COMPREPLY+=("$lead\${value#"$cut"}"); done < <(compgen -f -- "$typed")
  fi
}
_leasehold() {
  local words=() name flags="" seconds="" rest="$COMP_LINE" trimmed part i
  COMPREPLY=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    part="\${COMP_WORDS[i]}"
    trimmed="\${rest#"\${rest%%[![:space:]]*}"}"
    if ((i > 0)) && [[ "$trimmed" == "$rest" ]]; then
      words[\${#words[@]} - 1]+="$part"
    else
      words+=("$part")
    fi
    rest="\${trimmed#"$part"}"
  done
  local last=$((\${#words[@]} - 1))
  local word="\${words[last]}" first="\${words[1]}"
  if ((last == 1)); then
    COMPREPLY=($(compgen -W "${firstWords(entries).join(" ")}" -- "$word"))
    return
  fi
  for ((i = 2; i < last; i++)); do
    if [[ "\${words[i]}" == "--" ]]; then
      compopt -o default 2>/dev/null
      return
    fi
  done
  name="$first"
  case "$first" in
${groupCases.join("\n")}
  esac
  if [[ -n "$seconds" && " $seconds " == *" \${words[2]} "* ]] && ((last > 2)); then
    name="$first \${words[2]}"
  fi
  case "$name" in
${flagCases.join("\n")}
  esac
  if [[ "$word" == -* && "$word" != --*=* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
    return
  fi
  ((last == 2)) && COMPREPLY=($(compgen -W "$seconds" -- "$word"))
  _leasehold_values "$word" "\${words[@]:1}"
}
complete -F _leasehold leasehold
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
_leasehold_values() {
  local -a lines values shown
  lines=("\${(@f)$(command leasehold completion values -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  [[ "$PREFIX" == --*=* ]] && compset -P '*='
  if (( \${#lines} > 1 )); then
    values=("\${(@)lines[2,-1]%%$'\\t'*}")
    shown=("\${(@)lines[2,-1]/$'\\t'/  }")
    compadd -l -d shown -- "\${values[@]}"
  fi
  [[ "$lines[1]" == files ]] && _files
}
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
  if [[ "$words[CURRENT]" == -* && "$words[CURRENT]" != --*=* ]]; then
    compadd -- $flags
  else
    (( CURRENT == 3 )) && compadd -- $seconds
    _leasehold_values
  fi
}
if [[ "$funcstack[1]" == _leasehold ]]; then _leasehold "$@"; else compdef _leasehold leasehold; fi
`;
}

const fishValues = `function __leasehold_values
    set -l current (commandline -ct)
    set -l words (commandline -opc)
    set -l lines (command leasehold completion values -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $lines) -gt 1
        printf '%s\\n' $lines[2..-1]
    end
    if test "$lines[1]" = files
        __fish_complete_path (string replace -r -- '^--[^=]*=' '' "$current")
    end
end
function __leasehold_needs_values
    set -l words (commandline -opc)
    test (count $words) -gt 1; and not contains -- -- $words
end`;

function fish(entries: readonly Entry[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = [
    "# Completion of leasehold for fish",
    fishValues,
    "complete -c leasehold -f -n '__fish_use_subcommand'",
    "complete -c leasehold -f -n '__leasehold_needs_values' -a '(__leasehold_values)'",
  ];
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
        ...(sign === undefined ? [] : ["-x -a '(__leasehold_values)'"]),
      ];
      lines.push(`complete -c leasehold -n '${seen}' ${parts.join(" ")} -d ${quote(words)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}
