/** `man leasehold`: written from the tables that the command line is read by, so that it says what `--help` says. */
import { globalFlags } from "../src/cli/arguments.ts";
import type { Flags } from "../src/cli/command.ts";
import { commandsOf, groups } from "../src/cli/commands.ts";
import { exitCodes, exitMeaning, exitNames } from "../src/cli/exit-codes.ts";
import { version } from "../src/server/config/version.ts";

export async function manPage(): Promise<string> {
  const sections = Object.entries(groups).map(async ([title, group]) => {
    const commands = (await commandsOf(group)).map(
      ({ name, usage = "", summary, flags = {} }) =>
        `.TP\n.B leasehold ${escaped(`${name} ${usage}`.trim())}\n${escaped(summary)}.\n${flagList(flags)}`,
    );
    return `.SS ${escaped(title)}\n${commands.join("")}`;
  });
  const codes = exitNames.map((name) => `.TP\n.B ${exitCodes[name]}\n${escaped(exitMeaning(name))}.\n`);
  return [
    `.TH LEASEHOLD 1 "" "leasehold ${version}" "Leasehold"\n`,
    ".SH NAME\nleasehold \\- time-bounded leases for fleets of AI agents and workers\n",
    ".SH SYNOPSIS\n.B leasehold\n[\\fICOMMAND\\fR] [\\fIflags\\fR]\n",
    ".SH DESCRIPTION\nWithout a command it starts a server for this user, or says how things stand where one runs.\n",
    `.SH COMMANDS\n${(await Promise.all(sections)).join("")}`,
    `.SH FLAGS OF ALL COMMANDS\n${flagList(globalFlags).replace(/^\.RS\n|\.RE\n$/g, "")}`,
    `.SH EXIT STATUS\n${codes.join("")}`,
  ].join("");
}

function flagList(flags: Flags): string {
  const items = Object.entries(flags).map(([name, { sign, short, words }]) => {
    const shown = `${short === undefined ? "" : `-${short}, `}--${name}${sign === undefined ? "" : ` ${sign}`}`;
    return `.TP\n.B ${escaped(shown)}\n${escaped(words)}\n`;
  });
  return items.length === 0 ? "" : `.RS\n${items.join("")}.RE\n`;
}

/** A backslash, a dash, and a full stop or apostrophe at the start of a line have meanings of their own. */
function escaped(text: string): string {
  const plain = text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^([.'])/gm, "\\&$1");
  // What is beyond ASCII is named by its number: the page is shown in any locale.
  return plain.replaceAll(
    /[^\n -~]/g,
    (letter) => `\\[u${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`,
  );
}
