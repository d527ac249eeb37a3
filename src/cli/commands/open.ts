/** Opens the server's page in the browser, signed in as this command is. */
import { spawn } from "node:child_process";
import type { Command } from "../command.ts";
import { plain } from "../plain-text.ts";

const openCommand: Command = {
  name: "open",
  summary: "opens the server's page in the browser, signed in",
  usage: "[--print]",
  about: `The page is signed in with the key that this command uses, or with the owner's token of a server that was started
with --owner-only: by a link that is good once and for one minute. Where there are no keys, the page needs no sign-in.`,
  flags: { print: { words: "print the link and open nothing, for a browser elsewhere" } },
  examples: [
    ["leasehold open", "look at the fleet"],
    ["leasehold open --print", "a link to paste into a browser elsewhere, once"],
  ],
  run: async (call) => {
    const { path, expires_in_ms } = await call.ask("create_session_link", {});
    const link = `${call.url}${path}`;
    const isOpened = !call.isSet("print") && !call.out.isJson && (await openBrowser(link));
    call.out.show({ url: link, expires_in_ms }, () => (isOpened ? `opened ${plain(call.url)}` : plain(link)));
  },
};

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** False where there is no browser to be found, on a machine without a screen for instance. */
function openBrowser(link: string): Promise<boolean> {
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

export const commands: readonly Command[] = [openCommand];
