/** Backups of the data (S6): fetched from a running server, and restored while none runs. */
import { existsSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { type ClientTls, readClientTls } from "../../trust/client-tls.ts";
import type { Call, Command } from "../command.ts";
import { checkMaySend } from "../connection.ts";
import { checkDataPlace, dataFlag, dataOf } from "../data-folder.ts";
import { exitCodes } from "../exit-codes.ts";
import { keyFor, send } from "../owner-key.ts";
import { Failure } from "../problem.ts";
import { writeWhole } from "../whole-file.ts";

export const commands: readonly Command[] = [
  {
    name: "backup",
    summary: "fetches a backup from a running server",
    usage: "FILE",
    about: `A consistent copy of everything, taken while the server goes on. The file appears whole or not at all, and holds
the server's secret: keep it as safe as the data. For operators.`,
    flags: {
      force: { words: "replace an existing file" },
      port: { sign: "N", words: "the port of a server on this machine, in place of --url" },
    },
    examples: [["leasehold backup leases-monday.sqlite", "from the local server"]],
    run: async (call) => {
      process.umask(0o077);
      const file = call.word;
      if (existsSync(file) && !call.isSet("force")) {
        throw new Failure(`${file} exists already; choose another name, or replace it with --force`);
      }
      const bytes = await fetchBackup(call, file);
      call.out.show({ file, bytes }, () => `${file} has ${bytes} bytes.`);
    },
  },
  {
    name: "restore",
    summary: "replaces the data by a backup, while no server runs on it",
    usage: "FILE [--data DIR] [--force]",
    about: "Every older fence and token is stale afterwards: agents register again.",
    flags: {
      data: dataFlag,
      force: { words: "replace existing data" },
    },
    offline: true,
    examples: [["leasehold restore leases-monday.sqlite --data /var/lib/leasehold --force", "back to Monday"]],
    run: async (call) => {
      process.umask(0o077);
      const { restore } = await import("../../store/restore.ts");
      const data = dataOf(call);
      checkDataPlace(data);
      const { now } = restore(call.word, data, { at: Date.now(), force: call.isSet("force") });
      call.out.show(
        { data, restored: true },
        () =>
          `${data} is as it was at ${new Date(now).toISOString()}. Every older fence and token is stale: agents register again.`,
      );
    },
  },
];

/** Returns the size. */
async function fetchBackup(call: Call, file: string): Promise<number> {
  checkMaySend(call.address);
  const { url, key, tls } = call.address;
  const port = call.integer("port", 1, 65_535);
  const certificates = readClientTls(tls);
  const asked = { url: port === null ? url : `http://127.0.0.1:${port}`, key };
  const response = await request(await keyFor(asked, certificates, call.environment), certificates);
  if (response.statusCode !== 200) throw new Failure(`the server refused: ${await detailOf(response)}`);
  return writeWhole(file, response, (size) => {
    if (size !== Number(response.headers["content-length"])) throw new Failure("the backup was cut short; try again");
  });
}

/** Not with fetch, which gives up after five minutes of silence; making a large copy may take longer. */
async function request({ url: base, key }: KeyedAddress, tls: ClientTls | null): Promise<IncomingMessage> {
  const { backup } = await import("../../protocol/operating/backup.ts");
  const url = new URL(backup.path, base);
  const headers = key === null ? {} : { authorization: `Bearer ${key}` };
  return send(url, { method: backup.method, headers }, tls).catch((cause: Error) => {
    throw new Failure(`no server answers at ${url.origin}: ${cause.message}`, exitCodes.unavailable, { cause });
  });
}

type KeyedAddress = Awaited<ReturnType<typeof keyFor>>;

async function detailOf(response: IncomingMessage): Promise<string> {
  const body = (await json(response).catch(() => null)) as { readonly detail?: string } | null;
  return body?.detail ?? `status ${response.statusCode}`;
}
