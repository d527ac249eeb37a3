/** The ledger: verified, exported, and its signed head. */
import type { Command, Flags } from "../command.ts";
import { dataFlag, dataOf } from "../data-folder.ts";
import { exitCodes } from "../exit-codes.ts";
import { UsageProblem } from "../problem.ts";

const dataFlags: Flags = { data: dataFlag, tenant: { sign: "ID", words: "only this tenant's" } };

export const commands: readonly Command[] = [
  {
    name: "ledger verify",
    summary: "proves that no receipt was changed, removed, added or moved; 7 if one was",
    usage: "[--data DIR | --file FILE | --store URL] [--anchor FILE] [--tenant ID]",
    about: `Reads the data itself, whether a server runs on it or not, or an export. With --anchor it also proves that everything
that an earlier head covers is still there. docs/ledger.md says what exactly is hashed and signed.`,
    flags: {
      ...dataFlags,
      file: { sign: "FILE", words: "verify this export in place of the data" },
      store: { sign: "URL", words: "verify what a cluster has in its database: postgres://…" },
      anchor: { sign: "FILE", words: "an earlier head, from `ledger head`" },
    },
    offline: true,
    examples: [
      ["leasehold ledger verify --data /var/lib/leasehold --anchor head.json", "is all still there?"],
      ["leasehold ledger verify --file ledger.jsonl", "an export, without the server"],
    ],
    run: async (call) => {
      const { verifyLedger, verifyStoredLedger } = await import("../ledger/ledger.ts");
      const [file, anchor, tenant] = [call.text("file"), call.text("anchor"), call.text("tenant")];
      const store = call.text("store");
      if (store !== null && !/^postgres(ql)?:\/\//.test(store))
        throw new UsageProblem("--store is not postgres://user:password@host/database; a folder is given with --data");
      const { isWhole, text } =
        store === null
          ? verifyLedger({ data: dataOf(call), file, anchor, tenant })
          : await verifyStoredLedger(store, { anchor, tenant });
      call.out.show({ whole: isWhole, report: text.trimEnd() }, () => text);
      return isWhole ? exitCodes.done : exitCodes.notSo;
    },
  },
  {
    name: "ledger export",
    summary: "writes the ledger as JSON lines that anybody can verify",
    usage: "[--data DIR] [--out FILE] [--tenant ID]",
    flags: { ...dataFlags, out: { sign: "FILE", words: "write it here [standard output]" } },
    offline: true,
    examples: [["leasehold ledger export --data /var/lib/leasehold --out ledger.jsonl", "for an auditor"]],
    run: async (call) => {
      const out = call.text("out");
      const { exportLedger } = await import("../ledger/ledger.ts");
      const line = await exportLedger({ data: dataOf(call), tenant: call.text("tenant"), out });
      if (line !== null) call.out.show({ file: out }, () => line);
    },
  },
  {
    name: "ledger head",
    summary: "shows the ledger's signed head: keep it elsewhere as an anchor",
    examples: [["leasehold ledger head --json > head.json", "proves later that nothing was cut off"]],
    run: async (call) => {
      const head = await call.ask("get_ledger_head", {});
      call.out.show(head, () => JSON.stringify(head));
    },
  },
];
