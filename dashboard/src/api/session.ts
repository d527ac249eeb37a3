/** Who is signed in. Nothing of it is stored by the page: the browser keeps a cookie that no script can read. */
import { computed, signal } from "@preact/signals";
import type { OperationAnswers } from "../../../src/sdk/wire.ts";
import { request } from "./client.ts";

type Session = OperationAnswers["get_session"];

const agentTokenPrefix = "lha2.";

export const session = signal<Session | null>(null);
/** Why there is none, where that is not just a matter of signing in. */
export const trouble = signal<string | null>(null);
/** Chosen by an operator; null: the credential's own. */
export const tenant = signal<string | null>(null);
export const csrfToken = computed(() => session.value?.csrf_token ?? null);

/** Sign-ins and sign-outs that were answered: what was asked before one of them is out of date. */
let changes = 0;
/** The server's clock minus ours. */
let offsetMs = 0;

export function serverNow(): number {
  return Date.now() + offsetMs;
}

/** Those who may change what is not their own. */
export const isAbove = computed(() => {
  const role = session.value?.role;
  return role === "operator" || role === "supervisor";
});
/** Sees everything but what agents and tasks carry in confidence. */
export const isReader = computed(() => session.value?.role === "reader");
export const isOperator = computed(() => session.value?.role === "operator");

export async function askWho(): Promise<void> {
  const sent = Date.now();
  const before = changes;
  try {
    const found = (await request("GET", "/v1/session")) as Session;
    offsetMs = Date.parse(found.now) - (sent + Date.now()) / 2;
    trouble.value = null;
    // Without it, the link of `leasehold open` would show the sign-in again if this answer came after its own.
    if (before === changes) session.value = found;
  } catch {
    trouble.value = "The server cannot be reached.";
  }
}

export async function signIn(input: { readonly key: string } | { readonly code: string }): Promise<void> {
  // Of several shards an agent's own alone knows its token, and requests are routed by their heads.
  const isAgents = "key" in input && input.key.startsWith(agentTokenPrefix);
  const headers = isAgents ? { authorization: `Bearer ${input.key}` } : {};
  const made = (await request("POST", "/v1/session", input, undefined, headers)) as Session;
  changes++;
  session.value = made;
}

export async function signOut(): Promise<void> {
  const left = (await request("DELETE", "/v1/session")) as Session;
  changes++;
  session.value = left;
}

export function noteSignedOut(): void {
  const known = session.peek();
  if (known?.signed_in === true) session.value = { ...known, signed_in: false };
}
