/** Calls over HTTP to one of several servers: to the next one after one that does not answer. */
import type { ClientTls } from "../trust/client-tls.ts";
import { createHttpWire, type Fetch } from "./http.ts";
import type { Credentials, Outgoing, Wire } from "./transport.ts";

export interface Peer {
  readonly url: string;
  readonly credentials: Credentials;
}

export function createPeersWire(peers: readonly Peer[], fetch: Fetch | null, tls: ClientTls | null): Wire {
  const wires = peers.map((peer) => createHttpWire({ ...peer, fetch, tls }));
  const [first] = wires;
  if (first === undefined) throw new TypeError("A wire needs a server.");
  return wires.length === 1 ? first : new PeersWire(wires);
}

class PeersWire implements Wire {
  private readonly wires: readonly Wire[];
  private at = 0;

  constructor(wires: readonly Wire[]) {
    this.wires = wires;
  }

  send(call: Outgoing): void {
    const { at } = this;
    const wire = this.wires[at];
    if (wire === undefined) throw new RangeError("no such server");
    const passed: Outgoing = {
      name: call.name,
      input: call.input,
      frameId: 0,
      heardBefore: 0,
      isSent: false,
      giveUp: null,
      answered: (reply) => {
        // It knows no leader, or is about to end.
        if (reply.status === 503) this.moveOn(at);
        call.answered(reply);
      },
      broken: (error) => {
        this.moveOn(at);
        call.broken(error);
      },
    };
    call.giveUp = () => {
      call.isSent = passed.isSent;
      this.moveOn(at);
      wire.drop(passed, true);
    };
    wire.send(passed);
  }

  drop(call: Outgoing): void {
    call.giveUp?.();
  }

  private moveOn(from: number): void {
    if (this.at === from) this.at = (from + 1) % this.wires.length;
  }
}
