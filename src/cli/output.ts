/** What a command prints: tables and colours for a terminal, lines for pipes, JSON for programs. */
import type { Environment } from "./command.ts";
import { createPaint, type Paint } from "./paint.ts";
import { plainLines } from "./plain-text.ts";
import { type Column, tabbedText, tableText } from "./table.ts";

export class Output {
  readonly isJson: boolean;
  readonly isTerminal: boolean;
  readonly paint: Paint;

  constructor({ NO_COLOR, TERM }: Environment, isJson: boolean) {
    this.isJson = isJson;
    this.isTerminal = process.stdout.isTTY === true && !isJson;
    this.paint = createPaint(this.isTerminal && !NO_COLOR && TERM !== "dumb");
  }

  print(text: string): void {
    process.stdout.write(text.endsWith("\n") || text === "" ? text : `${text}\n`);
  }

  json(value: unknown): void {
    process.stdout.write(`${JSON.stringify(value)}\n`);
  }

  /** To standard error. It may have words of others in it: a server's warning, a purpose. */
  note(text: string): void {
    process.stderr.write(`leasehold: ${plainLines(text)}\n`);
  }

  /** The answer as JSON if `--json` was given, else as text. */
  show(value: unknown, words: () => string): void {
    if (this.isJson) this.json(value);
    else this.print(words());
  }

  /** The same for an answer that is one row of a table. */
  row<T>(value: T, columns: readonly Column<T>[]): undefined {
    this.show(value, () => this.table([value], columns, ""));
  }

  table<T>(rows: readonly T[], columns: readonly Column<T>[], none: string): string {
    if (rows.length === 0) return this.isTerminal ? `${none}\n` : "";
    return this.isTerminal
      ? tableText(rows, columns, this.paint, process.stdout.columns ?? 80)
      : tabbedText(rows, columns);
  }
}
