/** The terminal, taken over and given back whatever happens: at the end, on a signal, on an error, on Ctrl-Z. */
import type { ReadStream, WriteStream } from "node:tty";

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Shows these lines, painted already; only what has changed is written. */
  draw(lines: readonly string[]): void;
  /** Gives the terminal back. May be called again. */
  close(): void;
}

const csi = "\u001b[";
const enter = `${csi}?1049h${csi}?25l${csi}?7l`;
const leave = `${csi}?7h${csi}?25h${csi}?1049l`;

type Listener = [NodeJS.EventEmitter, ...Parameters<NodeJS.EventEmitter["on"]>];

/** Without an input there are no keys, and only signals end it. */
export function openScreen(
  input: ReadStream | null,
  output: WriteStream,
  { onKey, onResize }: { readonly onKey: (key: string) => void; readonly onResize: () => void },
): Screen {
  let isOpen = false;
  let shown: readonly string[] = [];
  const take = (): void => {
    if (isOpen) return;
    isOpen = true;
    shown = [];
    input?.setRawMode(true);
    input?.resume();
    output.write(enter);
  };
  const giveBack = (): void => {
    if (!isOpen) return;
    isOpen = false;
    output.write(leave);
    input?.setRawMode(false);
    input?.pause();
  };
  const onData = (chunk: Buffer): void => {
    for (const key of keysIn(chunk.toString())) {
      if (key !== "\u001a") {
        onKey(key);
        continue;
      }
      // Ctrl-Z: the shell gets its terminal back as it was, and we take it again when we go on.
      giveBack();
      process.kill(process.pid, "SIGSTOP");
    }
  };
  const onContinue = (): void => {
    take();
    onResize();
  };
  const resized = (): void => {
    shown = [];
    onResize();
  };
  const crashed = (error: unknown): void => {
    giveBack();
    process.stderr.write(`leasehold: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  };
  const listeners: Listener[] = [
    ...(input === null ? [] : [[input, "data", onData] satisfies Listener]),
    [output, "resize", resized],
    [process, "SIGCONT", onContinue],
    [process, "exit", giveBack],
    [process, "uncaughtException", crashed],
    [process, "unhandledRejection", crashed],
  ];
  for (const [emitter, event, listener] of listeners) emitter.on(event, listener);
  take();
  return {
    get columns() {
      return output.columns ?? 80;
    },
    get rows() {
      return output.rows ?? 24;
    },
    draw(lines) {
      if (!isOpen) return;
      let text = "";
      // Cleared before it is written: after a full line the cursor stands on its last character.
      for (let row = 0; row < Math.max(lines.length, shown.length); row++) {
        if (shown[row] !== lines[row]) text += `${csi}${row + 1};1H${csi}K${lines[row] ?? ""}${csi}0m`;
      }
      shown = [...lines];
      if (text !== "") output.write(text);
    },
    close() {
      giveBack();
      for (const [emitter, event, listener] of listeners) emitter.off(event, listener);
    },
  };
}

/** One key may come as several bytes, and several keys at once. */
export function keysIn(text: string): readonly string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: keys are control characters
  return text.match(/\u001b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|[\s\S]/gu) ?? [];
}
