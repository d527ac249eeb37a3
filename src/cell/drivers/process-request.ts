/** What a holder asks a process resource to run, decoded and held against what the configuration allows. */
import { realpathSync } from "node:fs";
import type { AccessFailure } from "../failure.ts";

export interface RunRequest {
  /** The program is named by its real path. */
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
}

interface Allowed {
  readonly allow: readonly string[];
  readonly envAllow: readonly string[];
}

export function readRun(body: string, { allow, envAllow }: Allowed): RunRequest | AccessFailure {
  const asked = decode(body);
  if (asked === null) {
    const detail = 'Send {"argv": ["/usr/bin/program", "argument"], "env": {}, "stdin": ""}.';
    return { code: "invalid_request", detail };
  }
  const { argv, env, stdin } = asked;
  const program = allowedProgram(argv[0] ?? "", allow);
  if (typeof program !== "string") return program;
  const refused = Object.keys(env).find((name) => !envAllow.includes(name));
  if (refused !== undefined) {
    const names = envAllow.join(", ") || "none";
    return { code: "environment_not_allowed", detail: `Variables that may be set here: ${names}.` };
  }
  return { program, args: argv.slice(1), env, stdin };
}

/** By its real path, so that no link stands for another program. */
function allowedProgram(name: string, allow: readonly string[]): string | AccessFailure {
  if (!name.startsWith("/")) return { code: "invalid_request", detail: "Name the program by its whole path." };
  let real: string;
  try {
    real = realpathSync(name);
  } catch {
    return { code: "not_found", detail: "The program does not exist." };
  }
  if (allow.includes("*") || allow.includes(real) || allow.includes(name)) return real;
  return { code: "program_not_allowed", detail: "This program may not be started here." };
}

function decode(body: string) {
  try {
    const { argv, env = {}, stdin = "" } = JSON.parse(body) as Partial<Record<"argv" | "env" | "stdin", unknown>>;
    const isText = (value: unknown): value is string => typeof value === "string" && !value.includes("\0");
    if (!Array.isArray(argv) || argv.length === 0 || !argv.every(isText) || typeof stdin !== "string") return null;
    if (typeof env !== "object" || env === null || !Object.entries(env).flat().every(isText)) return null;
    return { argv: argv as readonly string[], env: env as Record<string, string>, stdin };
  } catch {
    return null;
  }
}
