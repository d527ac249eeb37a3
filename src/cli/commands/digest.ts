/** An agent's checkpoint. */
import { agentToken } from "../acting.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { plain } from "../plain-text.ts";

export const digestCommand: Command = {
  name: "digest",
  summary: "shows an agent's checkpoint: where it would go on",
  usage: "AGENT",
  words: [1, 1],
  flags: {},
  examples: [
    ["leasehold digest refactorer-7", "where did it stop?"],
    ["leasehold digest refactorer-7 --json | jq .context", "what it had saved"],
  ],
  run: async (call) => {
    const { words, out } = call;
    const client = await call.connect();
    const digest = await client.call("get_digest", { agent_id: words[0] ?? "" }, agentToken(call));
    out.show(digest, () =>
      [
        `checkpoint  ${plain(digest.checkpoint_id)}, saved ${digest.saved_at}`,
        `goes on at  ${plain(digest.resume_point)}`,
        `on conflict ${digest.resolution_strategy}`,
        `priority    ${digest.priority_timestamp}`,
        ...digest.intent_backlog.map(({ predicate, resource }) => `intends     ${plain(`${predicate} ${resource}`)}`),
        `context     ${plain(JSON.stringify(digest.context))}`,
      ].join("\n"),
    );
    return exitCodes.done;
  },
};
