/** Results that are too large for a receipt, stored beside the ledger and pointed to. */
import type { Client } from "../sdk/client.ts";
import type { Call } from "./command.ts";
import { readAddress } from "./connection.ts";
import { Failure } from "./problem.ts";

export interface Artifact {
  readonly pointer: string;
  readonly sha256: string;
  readonly size: number;
}

export async function putArtifact(call: Call, client: Client, bytes: Buffer): Promise<Artifact> {
  const { key, tenant } = readAddress(call, call.environment);
  const response = await fetch(`${client.url}/v1/artifacts`, {
    method: "PUT",
    headers: {
      "content-type": "application/octet-stream",
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(tenant !== null && { "leasehold-tenant": tenant }),
    },
    body: new Uint8Array(bytes),
  });
  const answer = (await response.json().catch(() => ({}))) as Partial<Artifact> & { readonly detail?: string };
  const { pointer, sha256, size } = answer;
  if (!response.ok || pointer === undefined || sha256 === undefined || size === undefined) {
    throw new Failure(`the result of ${bytes.length} bytes could not be stored: ${answer.detail ?? response.status}`);
  }
  return { pointer, sha256, size };
}
