/** What `--help` prints: made of the table of settings, so that it lists what there is. */
import { type Config, environmentName, names, settings } from "./config.ts";

export function helpText(version: string): string {
  return `Leasehold ${version}: time-bounded leases for fleets of AI agents and workers

Usage: npm start -- [command] [flags]

Commands
  serve                        runs the server; this is what happens without a command
  keys create --role ROLE      makes a key and prints it, once; [--tenant T] [--label TEXT]
  keys list                    lists keys, without their secrets
  keys delete KEY_ID           deletes a key
  backup FILE                  fetches a backup from a running server; [--url URL] [--key KEY]
  restore FILE [--force]       puts a backup in place of the data; makes every older fence and token stale
  ledger verify                proves that no receipt was changed, added, moved or removed; [--tenant T]
                               [--anchor HEAD_FILE] also that none was cut off since; [--file EXPORT]
  ledger export                writes it as JSON lines that anybody can check; [--tenant T] [--out FILE]

  keys and restore work on the data itself, so the server must not be running; for ledger it may.

Flags                          also from the environment, or from a file
${names.map(settingLine).join("\n")}
  --config FILE                a JSON file with settings, such as {"port": 7200}   LEASEHOLD_CONFIG
  --help, --version

Of several places the first counts: flag, environment, file.

Examples
  npm start
  npm start -- --port 7200 --data /var/lib/leasehold
  LEASEHOLD_LOG_LEVEL=warn npm start -- --config leasehold.json
  npm start -- keys create --role operator --data /var/lib/leasehold
  npm start -- --host 0.0.0.0 --allowed-host leases.example.com --data /var/lib/leasehold
  npm start -- backup leases-monday.sqlite --key lhk_…
  npm start -- ledger verify --data /var/lib/leasehold --anchor saved-head.json
  npm start -- restore leases-monday.sqlite --data /var/lib/leasehold --force

Exit codes
  0 done  1 failed  2 wrong usage or configuration  3 another server has the data
  4 the data is of a newer Leasehold  5 cannot listen at that address
`;
}

function settingLine(name: keyof Config): string {
  const { flag, sign, usual, words } = settings[name];
  const shown = Array.isArray(usual) ? "" : ` [${usual}]`;
  return `  ${`--${flag} ${sign}`.padEnd(29)}${`${words}${shown}`.padEnd(66)} ${environmentName(name)}`;
}
