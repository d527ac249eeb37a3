/** Puts a backup in place of the data, while no server runs on it (S6). */
import { restore } from "../../store/restore.ts";
import type { Config } from "../config/config.ts";

export function restoreBackup(file: string, { data }: Config, force: boolean): string {
  const { now } = restore(file, data, { at: Date.now(), force });
  const until = new Date(now).toISOString();
  return `${data} is as it was at ${until}. Every older fence and token is stale: agents register again.\n`;
}
