/**
 * Keys, changed in the data itself while no server runs on it. This is how the first key is created, and how an operator
 * who has lost the last one gets back in; a running server has `/v1/keys`.
 */
import { drawEntropy } from "../engine/clock.ts";
import { Engine } from "../engine/engine.ts";
import { defaultTenant } from "../engine/recovery.ts";
import type { Command } from "../kernel/contract/commands.ts";
import type { Key, Millis, Role } from "../kernel/contract/records.ts";
import { keysIn } from "../kernel/views.ts";
import { openLedgerKey } from "../ledger/key-file.ts";
import { eventText } from "../protocol/watching/event-json.ts";
import { hashSecret, newKeyId, newSecret } from "../server/auth/credentials.ts";
import { createSqliteStore } from "../store/sqlite.ts";
import { checkDataPlace, existingData } from "./data-folder.ts";
import { Failure } from "./problem.ts";

const operator = { tenant: defaultTenant, actor: { role: "operator", agentId: null, epoch: null } } as const;

export class DataKeys {
  private readonly data: string;

  constructor(data: string) {
    this.data = data;
  }

  async create(role: Role, tenant: string | null, label: string | null, expiresAt: Millis | null) {
    checkDataPlace(this.data);
    const secret = newSecret();
    const key = {
      id: newKeyId(),
      hash: hashSecret(secret),
      role,
      tenant: tenant ?? defaultTenant,
      label,
      scopes: null,
      expiresAt,
    };
    await this.run({ type: "create_key", ...operator, entropy: drawEntropy(), key });
    return { key: secret, role, tenant_id: key.tenant, label };
  }

  async rotate(keyId: string, overlapMs: number, expiresAt: Millis | null) {
    existingData(this.data);
    const secret = newSecret();
    const hash = hashSecret(secret);
    await this.run({ type: "rotate_key", ...operator, entropy: drawEntropy(), keyId, overlapMs, expiresAt, hash });
    return { key: secret, key_id: keyId };
  }

  list(): Promise<readonly Key[]> {
    existingData(this.data);
    return this.withEngine((engine) =>
      engine.ask((state) =>
        [...keysIn(state).values()].map(({ record }) => record).toSorted((a, b) => a.createdAt - b.createdAt),
      ),
    );
  }

  async delete(keyId: string) {
    existingData(this.data);
    await this.run({ type: "delete_key", ...operator, entropy: drawEntropy(), keyId });
    return { key_id: keyId };
  }

  private async run(command: Command): Promise<void> {
    const { reply } = await this.withEngine((engine) => engine.command(command));
    if (reply.type === "refused") throw new Failure(reply.detail);
  }

  private async withEngine<T>(work: (engine: Engine) => Promise<T>): Promise<T> {
    const { data } = this;
    const log = { info: () => undefined, warn, error: warn };
    const ledgerKey = () => openLedgerKey(data);
    const engine = new Engine({ store: createSqliteStore(data), encodeEvent: eventText, log, ledgerKey });
    await engine.start();
    try {
      return await work(engine);
    } finally {
      await engine.close();
    }
  }
}

function warn(_details: object, message: string): void {
  process.stderr.write(`leasehold: ${message}\n`);
}
