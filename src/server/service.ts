/** What every edge of the server shares: the engine, who is watching what, and the secrets that tokens are made with. */
import type { Actor } from "../kernel/commands.ts";
import type { Engine } from "../engine/engine.ts";
import type { RequestWatch } from "./request-watch.ts";

export interface Service {
  readonly engine: Engine;
  readonly requests: RequestWatch;
}

/** Who asks, as the credential says. */
export interface Caller {
  readonly tenant: string;
  readonly actor: Actor;
}
