/** Whether a hook could work here: what it asks the server is asked, with the credential that it would show. */
import { connect, Unreachable } from "./control-plane.ts";
import type { Settings } from "./settings.ts";

export type Reach =
  | { readonly kind: "works" }
  | { readonly kind: "silent"; readonly why: string }
  /** It answers, and takes no agent of ours. */
  | { readonly kind: "refuses"; readonly why: string; readonly needsKey: boolean };

export async function tryServer(settings: Settings): Promise<Reach> {
  try {
    const { status, body } = await connect(settings).call("GET", "/v1/leases?limit=1");
    if (status === 200) return { kind: "works" };
    const { detail, error } = body;
    return { kind: "refuses", why: String(detail ?? error ?? status), needsKey: status === 401 };
  } catch (error) {
    if (error instanceof Unreachable) return { kind: "silent", why: error.message };
    throw error;
  }
}

export function reachWords(reach: Reach, url: string): string {
  switch (reach.kind) {
    case "works":
      return `answers at ${url}`;
    case "silent":
      return `does not answer at ${url}; start it with \`leasehold serve\`: until then writes are denied`;
    case "refuses":
      return reach.needsKey
        ? `answers at ${url}, and needs a key: set LEASEHOLD_KEY or LEASEHOLD_KEY_FILE; until then writes are denied`
        : `answers at ${url}, and refuses: ${reach.why}`;
  }
}
