/** Which variables the programs of a cell get (G13): those that its configuration names, and none of its credentials. */
import type { Fields } from "./fields.ts";

/** Every program gets these of the cell's own. */
const always = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"] as const;
const namePattern = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** The cell's own, its key among them. */
const ofTheCell = /^LEASEHOLD_/;
/** By these a program that is allowed runs code that is not: loaders, shells, interpreters, and what they start. */
const hijacking = new RegExp(
  "^(?:LD_|DYLD_|BASH_FUNC_|GLIBC_|MALLOC_|GCONV_|PYTHON|PERL|RUBY|NODE_|NPM_|GIT_|SSH_|JAVA_|JDK_|_JAVA_|LUA_|PHP)" +
    "|^(?:PATH|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|IFS|PS4|PROMPT_COMMAND|CDPATH|GLOBIGNORE|ZDOTDIR|CLASSPATH|LOCPATH|" +
    "NLSPATH|TERMINFO|TERMINFO_DIRS|TERMCAP|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|EDITOR|VISUAL|PAGER|LESSOPEN|" +
    "LESSCLOSE|BROWSER|HOME|XDG_CONFIG_HOME|TMPDIR)$",
);

/** Names of the cell's own variables that its programs get too. */
export function readPassed(fields: Fields): readonly string[] {
  return readNames(fields, "env_pass", ofTheCell, "LEASEHOLD_ variables are the cell's own");
}

/** Names of variables that a holder may set. */
export function readAllowed(fields: Fields): readonly string[] {
  const forbidden = new RegExp(`${ofTheCell.source}|${hijacking.source}`);
  return readNames(fields, "env_allow", forbidden, "with it an allowed program could be made to run another");
}

function readNames(fields: Fields, field: string, forbidden: RegExp, why: string): readonly string[] {
  const names = fields.list(field) ?? [];
  for (const name of names) {
    if (!namePattern.test(name)) fields.fault(field, `has ${JSON.stringify(name)}; give names of variables`);
    else if (forbidden.test(name)) fields.fault(field, `has ${name}; ${why}`);
  }
  return names;
}

/** The cell's own variables that a program gets. */
export function passedEnvironment(passed: readonly string[]): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of [...always, ...passed]) {
    const value = process.env[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
