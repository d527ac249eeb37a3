/** Opens an address in the user's browser. */
import { spawn } from "node:child_process";

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** False where there is no browser to be found, on a machine without a screen for instance. */
export function openBrowser(link: string): Promise<boolean> {
  const [program, ...args] = openers[process.platform] ?? ["xdg-open"];
  return new Promise((resolve) => {
    const child = spawn(program, [...args, link], { stdio: "ignore", detached: true });
    child.once("error", () => resolve(false));
    child.once("spawn", () => child.unref());
    child.once("exit", (code) => resolve(code === 0));
    setTimeout(() => resolve(true), openedMs).unref();
  });
}

/** An opener that still runs after this long has handed the link over. */
const openedMs = 2_000;
