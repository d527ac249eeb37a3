/** The ledger as JSON lines that can be verified without this program; docs/ledger.md says how. */

import type { Finding } from "./findings.ts";
import { headJson, readHead } from "./head.ts";
import { jsonIn } from "./ledger-json.ts";
import type { Link, Verifier } from "./verify.ts";

/** The stored text with its hash as one more member, so that removing it gives the text that was hashed. */
export function receiptLine(text: string, hash: string): string {
  return `${text.slice(0, -1)},"hash":"${hash}"}`;
}

const hashMember = /,"hash":"([0-9a-f]{64})"\}$/;
const hashMemberLength = `,"hash":""}`.length + 64;
/** By a pattern without backtracking, because parsing each line would take most of the time of a check. */
const start = /^\{"sequence":(\d{1,16}),"previous_hash":"[0-9a-f]{64}","tenant_id":("(?:[^"\\]|\\.){0,400}"),/;

/** Null if the line is not a receipt. */
export function readReceiptLine(line: string): Link | null {
  const [, sequence, tenant] = start.exec(line) ?? [];
  const [, hash] = hashMember.exec(line.slice(-hashMemberLength)) ?? [];
  if (sequence === undefined || tenant === undefined || hash === undefined) return null;
  const id = jsonIn(tenant);
  if (typeof id !== "string") return null;
  return { tenant: id, sequence: Number(sequence), hash, body: `${line.slice(0, -hashMemberLength)}}` };
}

/** Checks the lines of an export, in order. Each tenant's receipts must end with a head that covers the last. */
export class ExportCheck {
  private readonly verifier: Verifier;
  /** Tenants whose last receipt is not covered by a head yet. */
  private readonly open = new Set<string>();
  private lines = 0;

  constructor(verifier: Verifier) {
    this.verifier = verifier;
  }

  take(line: string): void {
    this.lines += 1;
    if (line === "") return;
    const link = readReceiptLine(line);
    if (link !== null) {
      this.open.add(link.tenant);
      return this.verifier.takeLink(link);
    }
    const read = readHead(line, "");
    if (read === null || read.publicKey === null) return this.verifier.note(this.unreadable());
    const { head, publicKey } = read;
    // A head is parsed into members, so only this comparison finds a change between them.
    if (headJson(head, publicKey) !== line) return this.verifier.note(this.unreadable());
    if (!this.verifier.trust({ keyId: head.keyId, publicKey })) {
      const detail = `the head in line ${this.lines} contains another key than the one it names`;
      return this.verifier.note({ code: "key_unknown", tenant: head.tenant, sequence: head.sequence, detail });
    }
    this.verifier.takeHead(head);
    if (this.verifier.endOf(head.tenant).sequence === head.sequence) this.open.delete(head.tenant);
  }

  finish(): void {
    for (const tenant of this.open) {
      const { sequence, isBroken } = this.verifier.endOf(tenant);
      if (isBroken) continue;
      const detail = `the file ends without a signed head for receipt ${sequence}: it may have been truncated`;
      this.verifier.note({ code: "end_unsigned", tenant, sequence, detail });
    }
  }

  private unreadable(): Finding {
    const detail = `line ${this.lines} is neither a receipt nor a head`;
    return { code: "line_unreadable", tenant: "", sequence: this.lines, detail };
  }
}
