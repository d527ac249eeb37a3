/**
 * The cells that are connected. What the engine has made durable is turned into what they have to do, and what they
 * answer goes back through the engine. A cell that is not connected gets nothing: when it comes back, its hello is
 * compared with what is believed here, and until then the kernel's deadlines decide (G7).
 */
import type { WebSocket } from "ws";
import type { NumberedEvent } from "../../engine/batch.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Decision, EngineLog } from "../../engine/engine-types.ts";
import { type Command, unstamped } from "../../kernel/contract/commands.ts";
import type { Cell, Lease } from "../../kernel/contract/records.ts";
import type { CellEnrolled } from "../../kernel/contract/replies.ts";
import { findRecord } from "../../kernel/views.ts";
import { type CellDone, type CellEndCode, type CellHello, cellCloseCodes } from "../../protocol/resources/cell-link.ts";
import type { Caller } from "../service.ts";
import { closeCodeFor, enrolCommand, linkKeys, welcomeFrame } from "./enrolling.ts";
import { type AfterHello, CellLink, type CellOrder } from "./link.ts";
import { bindOrder, orderFor, type ReportedLease, reportFor, teardownOrder, updateOrder } from "./orders.ts";
import { Renewals, type Taken, type Update } from "./renewals.ts";
import { controlCell, type LeaseTokens } from "./tokens.ts";

/** What a watcher of the service wants to count. */
export interface CellVitals {
  /** Frames by direction and type, such as "in heartbeat". */
  readonly frames: Map<string, number>;
  /** Called for each bind and teardown that a cell has answered. */
  onAnswered: ((op: "bind" | "teardown", seconds: number) => void) | null;
}

export class CellConnections {
  readonly vitals: CellVitals = { frames: new Map(), onAnswered: null };
  private readonly engine: Engine;
  private readonly tokens: LeaseTokens;
  private readonly log: EngineLog;
  /** Before their hello is durable. */
  private readonly arriving = new Set<CellLink>();
  private readonly links = new Map<string, { readonly link: CellLink; readonly enrolledAt: number }>();
  private readonly renewals = new Renewals();
  /** Events are followed only while cells are connected. */
  private unsubscribe: (() => void) | null = null;

  constructor(engine: Engine, tokens: LeaseTokens, log: EngineLog) {
    this.engine = engine;
    this.tokens = tokens;
    this.log = log;
    // Events of a commit of unknown outcome are never announced (S2): every cell connects again and compares.
    engine.onRecovery(() => this.dismissAll());
  }

  get size(): number {
    return this.links.size;
  }

  accept(socket: WebSocket, caller: Caller, names: CellLink["names"] = null): void {
    this.unsubscribe ??= this.engine.subscribe((events) => this.follow(events));
    const link = new CellLink(socket, caller, names, {
      hello: (from, hello) => this.enrol(from, hello),
      frame: (from, frame) => this.receive(from, frame),
      closed: (from) => this.forget(from),
      counted: (direction, type) => {
        const name = `${direction} ${type}`;
        this.vitals.frames.set(name, (this.vitals.frames.get(name) ?? 0) + 1);
      },
    });
    this.arriving.add(link);
  }

  isConnected(tenant: string, cell: string): boolean {
    return this.links.has(nameOf(tenant, cell));
  }

  /** Whether the cell has taken what was just decided of the lease. */
  awaitTaken(lease: Lease): Promise<Taken> {
    return this.renewals.await(lease);
  }

  /** The same of several, with those that are on no cell left out. */
  awaitAll(leases: readonly Lease[]): Promise<readonly { readonly lease: Lease; readonly taken: Taken }[]> {
    const bound = leases.filter(({ cell, state }) => cell !== null && state === "ACTIVE");
    return Promise.all(bound.map(async (lease) => ({ lease, taken: await this.awaitTaken(lease) })));
  }

  /** The cell's answer; null where it is not connected, or left before it had one. */
  async order(tenant: string, cell: string, order: CellOrder): Promise<CellDone | null> {
    return (await this.links.get(nameOf(tenant, cell))?.link.order(order)) ?? null;
  }

  /** After a rotation. */
  pushKeys(): void {
    for (const { link } of this.links.values()) {
      const keys = this.tokens.cellKeys(link.caller.tenant, link.hello.cell);
      link.send({ type: "keys", keys: [...linkKeys(keys)] });
    }
  }

  /** The server is going down: cells go on by themselves (G11), and come back. */
  close(): void {
    this.renewals.giveUp();
    this.dismissAll();
  }

  private dismissAll(): void {
    const all = [...this.arriving, ...[...this.links.values()].map(({ link }) => link)];
    for (const link of all) link.refuse("shutting_down", "Connect again.", cellCloseCodes.shuttingDown);
  }

  private enrol(link: CellLink, hello: CellHello): void {
    if (hello.cell === controlCell) {
      const message = `No cell is called ${controlCell}: that is the control plane's own name; choose another.`;
      return link.refuse("invalid_cell", message, cellCloseCodes.notAllowed);
    }
    if (link.names !== null && !link.names.includes(hello.cell)) {
      const message = `The certificate does not name the cell ${hello.cell}; it names ${link.names.join(", ") || "nothing"}.`;
      return link.refuse("forbidden", message, cellCloseCodes.notAllowed);
    }
    const enrolled = (decided: Decision): void => {
      const { reply } = decided;
      if (reply.type === "refused") return link.refuse(reply.code, reply.detail, closeCodeFor(reply.code));
      if (reply.type === "cell_enrolled" && link.isOpen) this.welcome(link, decided, reply);
    };
    this.submit(link, enrolCommand(link.caller, hello), enrolled);
  }

  /** From here on it gets what happens; what happened before is in the comparison. */
  private welcome(link: CellLink, decided: Decision, reply: CellEnrolled): void {
    const { tenant } = link.caller;
    const { cell } = link.hello;
    const name = nameOf(tenant, cell);
    const older = this.links.get(name)?.link;
    this.arriving.delete(link);
    this.links.set(name, { link, enrolledAt: decided.now });
    older?.refuse("stale_session", "Another connection of this cell has taken its place.", cellCloseCodes.replaced);
    link.send(welcomeFrame(decided, tenant, this.tokens.cellKeys(tenant, cell), reply));
    this.log.info({ tenant, cell, refused: reply.refused }, "a cell has enrolled");
    for (const lease of reply.bind) this.carryOut(link, lease, bindOrder(lease));
    for (const lease of reply.update) this.carryOut(link, lease, updateOrder(lease));
    for (const { leaseId, code } of reply.teardown) {
      // One that the kernel no longer has is torn down too, and then there is nobody to report to.
      const known = this.engine.peek((state) => findRecord(state, tenant, "lease", leaseId));
      this.carryOut(link, known ?? { id: leaseId, generation: 0 }, teardownOrder(leaseId, code as CellEndCode));
    }
  }

  private follow(events: readonly NumberedEvent[]): void {
    if (this.links.size === 0 && this.arriving.size === 0) {
      this.unsubscribe?.();
      this.unsubscribe = null;
      return;
    }
    for (const { event } of events) {
      if (event.type === "cell.gone") this.dropGone(event.cell, event.at);
      const found = orderFor(event);
      if (found === null || found.lease.cell === null) continue;
      const known = this.links.get(nameOf(event.tenant, found.lease.cell));
      if (known !== undefined) this.carryOut(known.link, found.lease, found.order);
    }
  }

  /** It was not heard of in time. If it is alive after all, it says hello again, and both compare. */
  private dropGone({ tenant, id }: Cell, at: number): void {
    const known = this.links.get(nameOf(tenant, id));
    if (known !== undefined && known.enrolledAt <= at) known.link.drop();
  }

  private carryOut(link: CellLink, lease: ReportedLease, order: CellOrder): void {
    const began = performance.now();
    void link.order(order).then((done) => {
      if (done === null) return;
      if (order.op === "update") return this.updated(link, order.lease, done);
      if (order.op === "bind" || order.op === "teardown") {
        this.vitals.onAnswered?.(order.op, (performance.now() - began) / 1_000);
      }
      // A caller that revives a held lease need not wait longer (L9).
      if (order.op === "bind" && !done.ok) this.renewals.note(order.lease, done);
      const report = reportFor(link, lease, order, done);
      // Late or repeated, it is refused, and nothing has changed.
      if (report !== null) this.submit(link, report, () => undefined);
    });
  }

  private updated(link: CellLink, lease: Update, done: CellDone): void {
    this.renewals.note(lease, done);
    // The stricter wins: a cell that knows nothing of a lease does not let its holder in.
    if (!done.ok && done.code === "lease_unknown") this.noteEnded(link, lease, "cell_lost_binding", null);
  }

  private noteEnded(
    link: CellLink,
    lease: ReportedLease,
    code: string,
    failure: string | null,
    noted: (decided: Decision) => void = () => undefined,
  ): void {
    const { tenant, actor } = link.caller;
    const { id: leaseId, generation } = lease;
    const asked = { tenant, actor, entropy: unstamped, cellId: link.hello.cell };
    this.submit(link, { type: "cell_ended", ...asked, leaseId, generation, code, failure }, noted);
  }

  private receive(link: CellLink, frame: AfterHello): void {
    const { tenant, actor } = link.caller;
    const asked = { tenant, actor, entropy: unstamped, cellId: link.hello.cell, session: link.hello.session };
    switch (frame.type) {
      case "heartbeat": {
        const inventory = frame.inventory ?? null;
        return this.submit(link, { type: "cell_heartbeat", ...asked, inventory }, ({ reply, now }) => {
          if (reply.type === "refused") return link.refuse(reply.code, reply.detail, closeCodeFor(reply.code));
          link.send({ type: "beat", seq: frame.seq, now });
        });
      }
      case "ended": {
        const { seq, lease_id: id, generation, code, failure } = frame;
        return this.noteEnded(link, { id, generation }, code, failure, ({ now }) => {
          link.send({ type: "noted", seq, now });
        });
      }
      case "leaving":
        return this.submit(link, { type: "cell_left", ...asked, reason: frame.reason }, () => {
          link.close();
        });
    }
  }

  private submit(link: CellLink, command: Command, done: (decided: Decision) => void): void {
    const finish = link.begin();
    this.engine.submit(command, {
      encode: null,
      send(decided: Decision) {
        finish();
        done(decided);
      },
      fail() {
        finish();
        // Whether it took effect is unknown; a new hello finds out.
        link.refuse("database_unavailable", "Connect again.", cellCloseCodes.shuttingDown);
      },
    });
  }

  private forget(link: CellLink): void {
    this.arriving.delete(link);
    if (!link.hasSaidHello) return;
    const name = nameOf(link.caller.tenant, link.hello.cell);
    if (this.links.get(name)?.link === link) this.links.delete(name);
  }
}

function nameOf(tenant: string, cell: string): string {
  return `${tenant}/${cell}`;
}
