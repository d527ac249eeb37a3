/** What observation updates are made of (A4): what was written, and what an agent has to learn of. */
import { choice, flag, hidden, integer, omitted, optional, text, time, type Values } from "./field.ts";
import { predicates } from "./predicates.ts";

/**
 * A writing lease that has ended, was downgraded or was transferred: what observation updates and assumptions are made
 * of (A4, A5). The store has it among the ended leases. It gets a row of its own if its lease lives on, and if it is the
 * last version of its name and many leases have ended since.
 */
export const write = {
  tenant: hidden(text()),
  resource: text(),
  predicate: choice(predicates),
  agentId: text(),
  holder: hidden(text()),
  at: time(),
  fence: hidden(integer()),
  version: omitted(optional(text())),
  /** Its holder had collected the grant, and so could look at the resource (W8). */
  looked: hidden(optional(flag(), true)),
};
export interface Write extends Values<typeof write> {}

/** A resource that an agent waited for, died for or lost, and since when it could not see it (A4). */
export const concern = { resource: text(), since: time() };
export interface Concern extends Values<typeof concern> {}
