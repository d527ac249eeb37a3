/**
 * Keys, made on the data itself while no server runs on it. This is how the first key comes to be, and the way back in
 * for whoever has lost the last one; with a server at hand there is `/v1/keys`.
 */
import { Engine } from "../../engine/engine.ts";
import { drawEntropy } from "../../engine/entropy.ts";
import { defaultTenant } from "../../engine/recovery.ts";
import type { Command } from "../../kernel/contract/commands.ts";
import type { Role } from "../../kernel/contract/records.ts";
import type { Reply } from "../../kernel/contract/replies.ts";
import { openLedgerKey } from "../../ledger/key-file.ts";
import { roles } from "../../protocol/schema/vocabulary.ts";
import { eventText } from "../../protocol/watching/event-json.ts";
import { createSqliteStore } from "../../store/sqlite.ts";
import { hashSecret, newKeyId, newSecret } from "../auth/key-ring.ts";
import { type Config, ConfigProblem } from "../config/config.ts";
import { CommandFailed } from "./failure.ts";

interface KeyWish {
  readonly role: string | null;
  readonly tenant: string | null;
  readonly label: string | null;
}

const asked = {
  tenant: defaultTenant,
  actor: { role: "operator", agentId: null, epoch: null },
} as const;

export async function createKey(config: Config, { role, tenant, label }: KeyWish): Promise<string> {
  if (!isRole(role)) throw new ConfigProblem(`keys create takes --role with one of ${roles.join(", ")}`);
  const secret = newSecret();
  await onData(config, async (engine) => {
    const key = { id: newKeyId(), hash: hashSecret(secret), role, tenant: tenant ?? defaultTenant, label };
    await run(engine, { type: "create_key", ...asked, entropy: drawEntropy(), key });
  });
  return `${secret}\n`;
}

export async function listKeys(config: Config): Promise<string> {
  const keys = await onData(config, (engine) =>
    engine.ask((state) =>
      [...state.keys.values()].map(({ record }) => record).toSorted((a, b) => a.createdAt - b.createdAt),
    ),
  );
  const lines = keys.map(
    ({ id, role, tenant, label }) => `${id}  ${role.padEnd(10)}  ${tenant}${label ? `  ${label}` : ""}\n`,
  );
  return lines.join("") || "There are no keys.\n";
}

export async function deleteKey(config: Config, keyId: string): Promise<string> {
  await onData(config, (engine) => run(engine, { type: "delete_key", ...asked, entropy: drawEntropy(), keyId }));
  return `${keyId} is deleted.\n`;
}

async function onData<T>({ data, store }: Config, work: (engine: Engine) => Promise<T>): Promise<T> {
  if (store === "memory") throw new ConfigProblem("keys are kept in the data, and --store memory has none");
  const log = { info: () => undefined, warn: say, error: say };
  const ledgerKey = () => openLedgerKey(data);
  const engine = new Engine({ store: createSqliteStore(data), encodeEvent: eventText, log, ledgerKey });
  await engine.start();
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
}

function say(_details: object, message: string): void {
  process.stderr.write(`leasehold: ${message}\n`);
}

async function run(engine: Engine, command: Command): Promise<Reply> {
  const { reply } = await engine.command(command);
  if (reply.type === "refused") throw new CommandFailed(reply.detail);
  return reply;
}

function isRole(text: string | null): text is Role {
  return roles.some((role) => role === text);
}
