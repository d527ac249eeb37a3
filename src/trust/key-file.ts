/**
 * A key in a file: the one reader of the command line, guards, cells and the SDK. In an argument or in the environment a
 * key can be read by other programs. It imports nothing of Node's, because browsers load the SDK.
 */
import { TrustProblem } from "./loopback.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const keyBytesMax = 8_192;

/** A descriptor too (`/dev/fd/3`). A plain file must be the owner's alone. Throws a TrustProblem. */
export function readKeyFile(file: string): string {
  const { closeSync, fstatSync, openSync, readFileSync } = process.getBuiltinModule("node:fs");
  let key: string;
  let handle: number | null = null;
  try {
    handle = openSync(file, "r");
    // Of what was opened: another file may have the name by now.
    const found = fstatSync(handle);
    const { mode, size } = found;
    if (found.isFile() && process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new TrustProblem(`others may read the key in ${file}; make it the owner's alone: chmod 600 ${file}`);
    }
    if (size > keyBytesMax) throw new TrustProblem(`${file} is not a key: it has ${size} bytes`);
    key = readFileSync(handle, "utf8").trim();
  } catch (error) {
    if (error instanceof TrustProblem) throw error;
    throw new TrustProblem(`the key file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  } finally {
    if (handle !== null) closeSync(handle);
  }
  if (key === "") throw new TrustProblem(`the key file ${file} is empty`);
  return key;
}

/** LEASEHOLD_KEY, or the key in the file that LEASEHOLD_KEY_FILE names; null where there is neither. */
export function keyOfEnvironment({ LEASEHOLD_KEY, LEASEHOLD_KEY_FILE }: Environment): string | null {
  if (LEASEHOLD_KEY) return LEASEHOLD_KEY;
  return LEASEHOLD_KEY_FILE ? readKeyFile(LEASEHOLD_KEY_FILE) : null;
}
