/** Pages of receipts as AsyncGate's programs read them: those after the last one that they know, by its id. */
import type { Input } from "../../protocol/operation.ts";
import type { Receipt } from "../../sdk/wire.ts";
import type { Reply } from "../control-plane.ts";
import { listIn } from "../sentences.ts";
import type { Ask } from "./gate-tool.ts";

/** A page that is not full after this many searches says how to go on, rather than go on by itself. */
const searchesMax = 50;
const limitDefault = 50;

export interface Search {
  /** Of `list_receipts`. */
  readonly filter: Input;
  /** A receipt's id, or the cursor of the page before. */
  readonly since: unknown;
  readonly limit: unknown;
  readonly keep?: (receipt: Receipt) => boolean | Promise<boolean>;
}

/**
 * Goes on until the page is full or the ledger ends, so that no receipt is passed over. `next_cursor` is null at the end;
 * `cursor` is the last receipt that was seen, to ask again from.
 */
export async function receiptsAfter(ask: Ask, { filter, since, limit, keep = () => true }: Search): Promise<Reply> {
  const wanted = typeof limit === "number" ? limit : limitDefault;
  const found: Receipt[] = [];
  let from: { readonly cursor?: string; readonly after_receipt_id?: string } =
    typeof since === "string" ? { after_receipt_id: since } : {};
  let last: string | null = typeof since === "string" ? since : null;
  for (let search = 0; search < searchesMax; search++) {
    let page = await ask("list_receipts", { ...filter, ...from, limit: wanted });
    if (search === 0 && page.status === 404) page = await asCursor(ask, { ...filter, limit: wanted }, since, page);
    if (page.status >= 400) return page;
    for (const receipt of listIn<Receipt>(page.body, "receipts")) {
      last = receipt.receipt_id;
      if (await keep(receipt)) found.push(receipt);
      if (found.length === wanted) return pageOf(found, last, last);
    }
    const { next_cursor: next } = page.body;
    if (typeof next !== "string") return pageOf(found, null, last);
    from = { cursor: next };
  }
  return pageOf(found, from.cursor ?? null, last);
}

async function asCursor(ask: Ask, filter: Input, since: unknown, unknown: Reply): Promise<Reply> {
  const page = await ask("list_receipts", { ...filter, cursor: since });
  return page.status === 400 ? unknown : page;
}

function pageOf(receipts: readonly Receipt[], next: string | null, cursor: string | null): Reply {
  return { status: 200, body: { receipts, next_cursor: next, cursor } };
}
