/** The end of a session's transcript. Claude Code calls no hook when its user interrupts it, but writes it down there. */
const { closeSync, fstatSync, openSync, readSync } = process.getBuiltinModule("node:fs");

const tailBytes = 16_384;
const mark = "[Request interrupted by user";

/** Whether the last entry of a person is an interruption, with nothing of the model after it. */
export function interruption(path: string): boolean {
  const lines = tailOf(path).split("\n").filter(Boolean).reverse();
  for (const line of lines) {
    if (!/"type":\s*"(?:user|assistant)"/.test(line)) continue;
    return /"type":\s*"user"/.test(line) && line.includes(mark);
  }
  return false;
}

function tailOf(path: string): string {
  let handle: number;
  try {
    handle = openSync(path, "r");
  } catch {
    return "";
  }
  try {
    const { size } = fstatSync(handle);
    const length = Math.min(size, tailBytes);
    const buffer = Buffer.alloc(length);
    const read = readSync(handle, buffer, 0, length, size - length);
    return buffer.subarray(0, read).toString("utf8");
  } finally {
    closeSync(handle);
  }
}
