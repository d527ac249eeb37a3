/**
 * `POST /v1/backup`: the copy is made beside the data and then sent, so that no caller ever names a file on the
 * server's disk, and a slow download holds nothing up.
 */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, rm, stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { noteChange } from "../../engine/audit-chain.ts";
import { auditEntryOf } from "../../kernel/kernel.ts";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import { StoreFault } from "../../store/faults.ts";
import { answerForFault } from "../answering/faults.ts";
import { type Gate, sendAnswer } from "../http/edge.ts";
import type { EdgeHandler } from "../http/http.ts";
import type { Caller, Service } from "../service.ts";

/** In the data folder, and so on the same disk; the store wants none beside its own files. */
const folderName = "backup.tmp";

/** Copies that an earlier run did not get to remove. */
export async function removeLeftovers(data: string): Promise<void> {
  await rm(join(data, folderName), { recursive: true, force: true });
}

export function createBackup(service: Service, gate: Gate, data: string): EdgeHandler {
  return ({ caller, raw }, reply) => {
    if (caller === null) throw new TypeError("admission comes before the handler");
    const address = gate.addressOf(raw);
    const actor = address === undefined ? caller.actor : { ...caller.actor, address };
    makeAndSend(service, data, reply.raw, { tenant: caller.tenant, actor }).catch((fault: unknown) => {
      if (reply.raw.headersSent) reply.raw.destroy();
      else if (fault instanceof StoreFault && fault.code === "store_unsupported") sendAnswer(reply.raw, unsupported);
      else sendAnswer(reply.raw, answerForFault(service, fault));
    });
  };
}

async function makeAndSend(
  { engine, log }: Service,
  data: string,
  response: ServerResponse,
  { tenant, actor }: Pick<Caller, "tenant" | "actor">,
): Promise<void> {
  const folder = join(data, folderName, randomBytes(6).toString("hex"));
  const file = join(folder, "leasehold.sqlite");
  // Before it is taken: a copy of everything never leaves unseen (S7).
  await noteChange(engine, auditEntryOf(tenant, actor, "backup", null, {}, engine.now()));
  await mkdir(folder, { recursive: true });
  try {
    await engine.store.backup(file);
    const { size } = await stat(file);
    log.info({ bytes: size }, "a backup was taken");
    response.writeHead(200, {
      "Content-Type": "application/octet-stream",
      "Content-Length": size,
      "Content-Disposition": `attachment; filename="leasehold-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.sqlite"`,
      "Cache-Control": "no-store",
    });
    await pipeline(createReadStream(file), response);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const unsupported = errorAnswer(
  "invalid_request",
  "This server keeps its data in memory only, so there is nothing to back up; start it with --store sqlite.",
);
