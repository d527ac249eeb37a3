/** The ledger as a whole: whether it is whole, a copy that others can check, and how far it has come. */
import { loadConfig } from "../../server/config/config.ts";
import type { Call, Command, Flags } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";

const dataFlags: Flags = {
  data: { sign: "DIR", words: "the data [./data]; also LEASEHOLD_DATA" },
};

function dataOf(call: Call): string {
  const data = call.text("data");
  return loadConfig(data === null ? {} : { data }, call.environment).data;
}

export const ledgerVerifyCommand: Command = {
  name: "ledger verify",
  summary: "proves that no receipt was changed, removed, added or moved; 7 if one was",
  usage: "[--data DIR | --file FILE] [--anchor FILE] [--tenant ID]",
  words: [0, 0],
  about: `Reads the data itself, with a server at work on it or without, or an export. With --anchor it also proves that all
that a head which was saved before speaks of is still there. docs/ledger.md says what exactly is hashed and signed.`,
  flags: {
    ...dataFlags,
    file: { sign: "FILE", words: "check this export in place of the data" },
    anchor: { sign: "FILE", words: "a head that was saved before, from `ledger head`" },
  },
  examples: [
    ["leasehold ledger verify --data /var/lib/leasehold --anchor head.json", "is all still there?"],
    ["leasehold ledger verify --file ledger.jsonl", "an export, without the server"],
  ],
  run: async (call) => {
    const wish = {
      data: dataOf(call),
      file: call.text("file"),
      anchor: call.text("anchor"),
      tenant: call.text("tenant"),
    };
    const { verifyLedger } = await import("../../server/commands/ledger.ts");
    const { isWhole, text } = verifyLedger(wish);
    call.out.show({ whole: isWhole, report: text.trimEnd() }, () => text);
    return isWhole ? exitCodes.done : exitCodes.notSo;
  },
};

export const ledgerExportCommand: Command = {
  name: "ledger export",
  summary: "writes the ledger as JSON lines that anybody can check",
  usage: "[--data DIR] [--out FILE] [--tenant ID]",
  words: [0, 0],
  flags: { ...dataFlags, out: { sign: "FILE", words: "write it here [standard output]" } },
  examples: [["leasehold ledger export --data /var/lib/leasehold --out ledger.jsonl", "for an auditor"]],
  run: async (call) => {
    const out = call.text("out");
    const { exportLedger } = await import("../../server/commands/ledger.ts");
    const line = await exportLedger({ data: dataOf(call), tenant: call.text("tenant"), out });
    if (line !== null) call.out.show({ file: out }, () => line);
    return exitCodes.done;
  },
};

export const ledgerHeadCommand: Command = {
  name: "ledger head",
  summary: "shows the ledger's signed head: keep it elsewhere as an anchor",
  usage: "",
  words: [0, 0],
  flags: {},
  examples: [["leasehold ledger head --json > head.json", "proves later that nothing was cut off"]],
  run: async (call) => {
    const head = await (await call.connect()).call("get_ledger_head", {});
    call.out.show(head, () => JSON.stringify(head));
    return exitCodes.done;
  },
};
