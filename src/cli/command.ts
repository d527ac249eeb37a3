/** What a command is, and what it is given when it is run. */
import type { CallOptions, Client, OperationInput, OperationName } from "../sdk/client.ts";
import type { OperationAnswers } from "../sdk/wire.ts";
import type { Address } from "./connection.ts";
import type { Output } from "./output.ts";

/** What a value can name: completion looks it up. */
export type Named =
  | "resource"
  | "lease"
  | "agent"
  | "task"
  | "task type"
  | "tenant"
  | "key"
  | "cell"
  | "policy"
  | "profile"
  | "file";

export interface Flag {
  /** Stands for the value in the help; a flag without one is on or off. */
  readonly sign?: string;
  readonly short?: string;
  readonly words: string;
  /** May be given several times. */
  readonly many?: true;
  /** The field of the server's input that the value is for. */
  readonly field?: string;
  /** The values that there are. */
  readonly choices?: readonly string[];
  /** What it names, where the sign does not tell: an ID is one of many. */
  readonly names?: Named;
  /** The least number, 0 if left out. */
  readonly min?: number;
}
export type Flags = Readonly<Record<string, Flag>>;
export type Environment = Readonly<Record<string, string | undefined>>;

export interface Command {
  /** As it is typed: "ls", "tasks add". */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows the name: "RES… -- COMMAND [ARGUMENT…]"; nothing if left out. */
  readonly usage?: string;
  /** How many words it takes, where the usage does not tell by itself. */
  readonly words?: readonly [min: number, max: number];
  /** What its words name, where the usage does not tell. */
  readonly names?: Named;
  /** A paragraph or two for its own help. */
  readonly about?: string;
  /** Beside those that every command has. */
  readonly flags?: Flags;
  readonly examples: readonly (readonly [line: string, what: string])[];
  /** What follows `--` is another command with its arguments, which are not parsed here. */
  readonly wraps?: true;
  /** Needs no server, and so takes no flags that say which one. */
  readonly offline?: true;
  /** Returns the exit code; undefined means success. */
  run(call: Call): Promise<number | undefined>;
}

/** One word or flag of the line, in the order in which they stand there. */
export type Token =
  | { readonly kind: "word"; readonly text: string }
  | { readonly kind: "flag"; readonly name: string; readonly value: string | null };

export interface Call {
  readonly words: readonly string[];
  /** The first of them; "" where there is none. */
  readonly word: string;
  readonly tokens: readonly Token[];
  /** What follows `--`. */
  readonly wrapped: readonly string[];
  readonly environment: Environment;
  readonly cwd: string;
  readonly out: Output;
  isSet(flag: string): boolean;
  text(flag: string): string | null;
  texts(flag: string): readonly string[];
  durationMs(flag: string): number | null;
  integer(flag: string, min?: number, max?: number): number | null;
  choice<T extends string>(flag: string, values: readonly T[]): T | null;
  /** The fields of those flags that were given: durations where the sign is TIME, integers where it is N. */
  fields(flags: Flags): Readonly<Record<string, unknown>>;
  /** The name of a resource as the control plane knows it; paths are taken within their repository. */
  resource(name: string): string;
  /** The server that the flags or the environment name; closed when the command has ended. */
  connect(): Promise<Client>;
  /** One call of that server. */
  ask<N extends OperationName>(name: N, input: OperationInput<N>, options?: CallOptions): Promise<OperationAnswers[N]>;
  /** All commands there are, or those whose names begin with this word. */
  commands(first?: string): Promise<readonly Command[]>;
  /** The server's address. */
  readonly url: string;
  readonly key: string | null;
  /** All that is known about how to reach it. */
  readonly address: Address;
}
