/** Progress on standard error, for work that takes longer than two seconds. */

export interface Progress {
  readonly at: (done: number) => void;
  readonly end: () => void;
}

const quietMs = 2_000;
const everyMs = 1_000;

export function createProgress(what: string): Progress {
  const began = performance.now();
  const { stderr } = process;
  let next = began + quietMs;
  let isShown = false;
  return {
    at(done) {
      const now = performance.now();
      if (now < next) return;
      next = now + everyMs;
      isShown = true;
      const seconds = Math.round((now - began) / 1_000);
      const line = `${done.toLocaleString("en")} ${what} in ${seconds} s`;
      stderr.write(stderr.isTTY ? `\r${line}` : `${line}\n`);
    },
    end() {
      if (isShown && stderr.isTTY) stderr.write("\n");
    },
  };
}
