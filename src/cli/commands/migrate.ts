/** Moves the data of one server to PostgreSQL, where several can share it. */
import { existsSync, readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { MoveProgress } from "../../store/moving.ts";
import type { Call, Command } from "../command.ts";
import { existingData } from "../data-folder.ts";
import { UsageProblem } from "../problem.ts";

const progressEveryMs = 2_000;

const migrateCommand: Command = {
  name: "migrate",
  summary: "moves a stopped server's data to PostgreSQL",
  usage: "--from DIR --to URL --master-key-file FILE [--data DIR]",
  about: `Everything goes along: live leases, agents, requests, tasks, history, the ledger with its hashes and its key, the audit
log, keys, tenants, policies and artifacts. Fences, ids and event numbers go on, so leases and tokens stay good. It is done whole
or not at all; interrupted, it is run again. It refuses data that a server works on, and a schema that is not empty. Afterwards no
server opens the folder any more. Artifacts are copied into the folder that the new servers share (--data); without it they stay
where they are, and the new servers get that folder as their --data.`,
  flags: {
    from: { sign: "DIR", words: "the data of the stopped server" },
    to: { sign: "URL", words: "postgres://user:password@host/database, ?schema= for another schema than leasehold" },
    "master-key-file": {
      sign: "FILE",
      words: "the key under which secrets are encrypted there; also LEASEHOLD_MASTER_KEY_FILE",
    },
    data: { sign: "DIR", words: "the folder that the new servers share, for artifacts [--from]" },
  },
  offline: true,
  examples: [
    [
      "leasehold migrate --from /var/lib/leasehold --to postgres://leasehold@db/leasehold --master-key-file master.key",
      "then start servers with --store and the same master key",
    ],
  ],
  run: async (call) => {
    process.umask(0o077);
    const from = existingData(resolve(call.cwd, given(call, "from", "the data folder of the stopped server")));
    const to = given(call, "to", "the database, as postgres://user:password@host/database");
    if (!/^postgres(ql)?:\/\//.test(to)) throw new UsageProblem("--to is not postgres://user:password@host/database");
    const shared = resolve(call.cwd, call.text("data") ?? from);
    const { MasterKey, movedSecrets } = await import("../../server/cluster/secrets.ts");
    const { moveToPostgres } = await import("../../store/moving.ts");
    const key = new MasterKey(call.text("master-key-file") ?? (call.environment["LEASEHOLD_MASTER_KEY_FILE"] || null));
    const box = key.box("engine");
    const { rows, lastSeq } = await moveToPostgres({
      folder: from,
      url: to,
      at: Date.now(),
      bodyOf: (kind, body) => {
        if (kind !== "engine") return body;
        const record = JSON.parse(body) as { readonly secret: string };
        return JSON.stringify({ ...record, secret: box.seal(record.secret) });
      },
      secrets: movedSecrets(key, (name) => readIfThere(join(from, name))),
      prepare: () => copyArtifacts(from, shared, call),
      onProgress: reporter(call),
    });
    call.out.show({ from, rows, last_seq: lastSeq, data: shared }, () =>
      [
        `${from} was moved: ${rows["live"]} live records, ${rows["receipts"]} receipts, ${rows["ended"]} ended leases, ` +
          `${rows["ended_tasks"]} ended tasks, events up to ${lastSeq}.`,
        `Start servers with --store postgres://… --master-key-file … --data ${shared}`,
      ].join("\n"),
    );
  },
};

function given(call: Call, flag: string, what: string): string {
  const value = call.text(flag);
  if (value === null) throw new UsageProblem(`name ${what} with --${flag}`);
  return value;
}

function readIfThere(file: string): string | null {
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

/** A line every two seconds, so that nothing is said about what is quick. */
function reporter({ out }: Call): (progress: MoveProgress) => void {
  let last = performance.now();
  return ({ table, rows, of }) => {
    const now = performance.now();
    if (now - last < progressEveryMs) return;
    last = now;
    out.note(`moving ${table}: ${rows} of ${of} rows`);
  };
}

/** Files are named by their content and never changed: one that is there already is left. */
async function copyArtifacts(from: string, to: string, { out }: Call): Promise<void> {
  if (from === to) return;
  for (const name of ["artifacts", "staged"]) {
    const source = join(from, name);
    if (!existsSync(source)) continue;
    let [files, last] = [0, performance.now()];
    await cp(source, join(to, name), {
      recursive: true,
      preserveTimestamps: true,
      filter: () => {
        files++;
        if (performance.now() - last >= progressEveryMs) {
          last = performance.now();
          out.note(`copying ${name}: ${files} files and folders`);
        }
        return true;
      },
    });
  }
}

export const commands: readonly Command[] = [migrateCommand];
