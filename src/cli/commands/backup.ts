/** A copy of everything, from a running server. */
import { statSync } from "node:fs";
import { loadConfig } from "../../server/config/config.ts";
import type { Command } from "../command.ts";
import { readAddress } from "../connection.ts";
import { exitCodes } from "../exit-codes.ts";

export const backupCommand: Command = {
  name: "backup",
  summary: "fetches a backup from a running server",
  usage: "FILE",
  words: [1, 1],
  about: `One moment of everything, taken while the server goes on. The file appears whole or not at all, and holds the
server's secret: keep it as safe as the data. For operators.`,
  flags: {},
  examples: [["leasehold backup leases-monday.sqlite", "from the local server"]],
  run: async (call) => {
    process.umask(0o077);
    const file = call.words[0] ?? "";
    const { url, key } = readAddress(call, call.environment);
    const { fetchBackup } = await import("../../server/commands/backup.ts");
    const line = await fetchBackup(file, loadConfig({}, {}), { url, key: key ?? undefined });
    call.out.show({ file, bytes: statSync(file).size }, () => line);
    return exitCodes.done;
  },
};
