/** What about tokens only the server knows: whether one is good, and the keys that they are made with. */
import type { TokenKeys } from "../../sdk/wire.ts";
import type { Command } from "../command.ts";
import { showDuration } from "../durations.ts";
import { exitCodes } from "../exit-codes.ts";
import { isServersWord } from "../failure.ts";
import type { Column } from "../table.ts";
import { readToken } from "./token.ts";

const refusals: ReadonlySet<string> = new Set([
  "token_invalid",
  "stale_token",
  "caveat_failed",
  "lease_expired",
  "lease_released",
  "lease_revoked",
  "resource_fenced",
]);

export const tokenVerifyCommand: Command = {
  name: "token verify",
  summary: "asks the server whether a token is good; 7 if it is not",
  usage: "[TOKEN] [--resource RES] [--operation NAME]",
  words: [0, 1],
  about: `Without TOKEN, or with -, it is read from standard input. A token that is narrowed is good for what is named here, or
not at all: a caveat on what is not named fails.`,
  flags: {
    resource: { sign: "RES", words: "what it is to be used on" },
    operation: { sign: "NAME", words: "what is to be done: read, write, connect, run" },
  },
  examples: [["leasehold token verify --operation read < token.txt", "would it be let in?"]],
  run: async (call) => {
    const { out } = call;
    const token = await readToken(call);
    const resource = call.text("resource");
    const operation = call.text("operation");
    const name = resource === null ? null : call.resource(resource);
    const client = await call.connect();
    try {
      const verified = await client.call("verify_token", {
        token,
        ...(name !== null && { resource: name }),
        ...(operation !== null && { operation }),
      });
      const { lease, tenant, caveats } = verified;
      const narrowed = caveats.length === 0 ? "" : `, narrowed by ${caveats.map(({ type }) => type).join(", ")}`;
      out.show(
        verified,
        () =>
          `good: ${lease.predicate} ${lease.resource} of ${lease.agent_id} (${tenant}), fence ${lease.fence}, ${showDuration(lease.expires_in_ms)} left${narrowed}`,
      );
      return exitCodes.done;
    } catch (error) {
      if (!isServersWord(error) || !refusals.has(error.code)) throw error;
      if (out.isJson) out.json(error.body);
      out.note(`it is not good: ${error.detail} (${error.code})`);
      return exitCodes.notSo;
    }
  },
};

type Key = TokenKeys["keys"][number];

const columns: readonly Column<Key>[] = [
  { title: "KEY", cell: ({ key_id: id }) => id },
  { title: "SINCE", cell: ({ created_at: at }) => at },
  { title: "GOOD UNTIL", cell: ({ retires_at: at }) => at ?? "present" },
];

export const tokenRotateCommand: Command = {
  name: "token rotate",
  summary: "makes a new key for tokens; cells are told at once",
  usage: "",
  words: [0, 0],
  about:
    "Tokens of the older key stay good for six minutes, longer than any of them lives. The keys stay in the data folder.",
  flags: {},
  examples: [["leasehold token rotate", "somebody may have seen the key"]],
  run: async ({ out, connect }) => {
    const keys = await (await connect()).call("rotate_token_keys", {});
    out.show(keys, () => out.table(keys.keys, columns, ""));
    return exitCodes.done;
  },
};
