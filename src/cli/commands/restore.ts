/** Puts a backup in place of the data. */
import { loadConfig } from "../../server/config/config.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";

export const restoreCommand: Command = {
  name: "restore",
  summary: "puts a backup in place of the data, while no server runs on it",
  usage: "FILE [--data DIR] [--force]",
  words: [1, 1],
  about: "Every older fence and token is stale afterwards: agents register again.",
  flags: {
    data: { sign: "DIR", words: "the data [./data]; also LEASEHOLD_DATA" },
    force: { words: "replace data that is there" },
  },
  examples: [["leasehold restore leases-monday.sqlite --data /var/lib/leasehold --force", "back to Monday"]],
  run: async (call) => {
    process.umask(0o077);
    const data = call.text("data");
    const config = loadConfig(data === null ? {} : { data }, call.environment);
    const { restoreBackup } = await import("../../server/commands/restore.ts");
    const line = restoreBackup(call.words[0] ?? "", config, call.isSet("force"));
    call.out.show({ data: config.data, restored: true }, () => line);
    return exitCodes.done;
  },
};
