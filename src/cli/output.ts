/** What a command prints: tables and colours for a terminal, lines for pipes, JSON for programs. */
import type { Environment } from "./command.ts";
import { createPaint, type Paint } from "./paint.ts";
import { type Column, tabbedText, tableText } from "./table.ts";

export interface Output {
  readonly isJson: boolean;
  readonly isTerminal: boolean;
  readonly paint: Paint;
  /** In characters. */
  readonly width: number;
  print(text: string): void;
  json(value: unknown): void;
  /** To standard error. */
  note(text: string): void;
  /** The answer as JSON if `--json` was given, else as text. */
  show(value: unknown, words: () => string): void;
  /** The same for an answer that is one row of a table. */
  row<T>(value: T, columns: readonly Column<T>[]): undefined;
  table<T>(rows: readonly T[], columns: readonly Column<T>[], none: string): string;
}

export interface Streams {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

export function createOutput({ stdout, stderr }: Streams, environment: Environment, isJson: boolean): Output {
  const isTerminal = stdout.isTTY === true && !isJson;
  const { NO_COLOR, TERM } = environment;
  const paint = createPaint(isTerminal && !NO_COLOR && TERM !== "dumb");
  const width = stdout.columns ?? 80;
  const output: Output = {
    isJson,
    isTerminal,
    paint,
    width,
    print: (text) => void stdout.write(text.endsWith("\n") || text === "" ? text : `${text}\n`),
    json: (value) => void stdout.write(`${JSON.stringify(value)}\n`),
    note: (text) => void stderr.write(`leasehold: ${text}\n`),
    show: (value, words) => (isJson ? output.json(value) : output.print(words())),
    row: (value, columns) => void output.show(value, () => output.table([value], columns, "")),
    table(rows, columns, none) {
      if (rows.length === 0) return isTerminal ? `${none}\n` : "";
      return isTerminal ? tableText(rows, columns, paint, width) : tabbedText(rows, columns);
    },
  };
  return output;
}
