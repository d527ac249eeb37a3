/** Looks whether all is well between here and the server, and says what to do where it is not. */
import type { Call, Command } from "../command.ts";
import { type Check, checkDisk, checkReach, serverChecks } from "../doctor-checks.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Colour } from "../paint.ts";
import { plain } from "../plain-text.ts";
import { repositoryAt } from "../resource-names.ts";

const marks: Readonly<Record<Check["status"], readonly [mark: string, colour: Colour]>> = {
  ok: ["ok     ", "green"],
  warning: ["warning", "yellow"],
  problem: ["problem", "red"],
};

const doctorCommand: Command = {
  name: "doctor",
  summary: "finds the server, and checks version, clock, keys and disk",
  usage: "[--data DIR] [--store URL]",
  about: "The exit code is 7 where there is a problem; warnings alone are 0.",
  flags: {
    data: { sign: "DIR", words: "also measure how long this folder's disk takes to make 4 KiB durable" },
    store: {
      sign: "URL",
      words: "also check a database for a cluster, postgres://…: is it durable, and how far away?",
    },
  },
  examples: [
    ["leasehold doctor", "is the server well, and do we agree on the time?"],
    ["leasehold doctor --data /var/lib/leasehold", "is that disk fit for it?"],
  ],
  run: async (call) => {
    const { out } = call;
    const checks: Check[] = [{ name: "here", status: "ok", detail: here(call) }];
    const client = await call.connect();
    const reach = await checkReach(client);
    checks.push({ name: "server", ...reach.found });
    if (reach.found.status !== "problem") {
      for (const [name, check] of Object.entries(serverChecks)) checks.push({ name, ...(await check(client, reach)) });
    }
    const data = call.text("data");
    if (data !== null) checks.push({ name: "disk", ...checkDisk(data) });
    const store = call.text("store");
    if (store !== null) {
      const { checkDatabase } = await import("../doctor-database.ts");
      checks.push({ name: "database", ...(await checkDatabase(store)) });
    }
    const ok = checks.every(({ status }) => status !== "problem");
    out.show({ ok, url: call.url, checks }, () =>
      checks
        .map(({ name, status, detail }) => {
          const [mark, colour] = marks[status];
          return `${out.paint[colour](mark)}  ${name.padEnd(9)}${plain(detail)}`;
        })
        .join("\n"),
    );
    return ok ? exitCodes.done : exitCodes.notSo;
  },
};

function here({ cwd }: Call): string {
  const repository = repositoryAt(cwd);
  const names =
    repository === null ? "this folder is not in a repository" : `names here are FILE:/${repository.name}/…`;
  return `Node ${process.versions.node}; ${names}`;
}

export const commands: readonly Command[] = [doctorCommand];
