/** Opens the server's page in the browser, signed in as this command is. */
import { openBrowser } from "../browser.ts";
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

export const commands: readonly Command[] = [openCommand];
