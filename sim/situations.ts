/** Follows replies and events, and counts which rules were exercised. Cells get their orders here. */
import type { Command } from "../src/kernel/contract/commands.ts";
import type { KernelEvent } from "../src/kernel/contract/events.ts";
import type { Lease } from "../src/kernel/contract/records.ts";
import type { Reply } from "../src/kernel/contract/replies.ts";
import { count } from "./counters.ts";
import { tell } from "./hosting.ts";
import type { World } from "./world.ts";

const manyAtOnce = 8;

export function noteReply({ counters }: World, command: Command, reply: Reply): void {
  count(counters, `command ${command.type}`);
  if (reply.type === "refused") {
    count(counters, `refused ${reply.code}`);
    if (reply.reason === "quota" && reply.detail.includes("units of")) count(counters, "G2 quota on a type");
    if (reply.reason !== undefined) count(counters, `denied ${reply.reason}`);
    if (reply.code === "stale_epoch") count(counters, "A3 command of an older instance");
  }
  if (reply.type === "paused") count(counters, `paused ${reply.reason}`);
  if (command.type !== "acquire") return;
  count(counters, `verdict ${reply.type}`);
  const leavesChoice = command.intents.some(({ pick }) => pick === "any");
  if (leavesChoice) count(counters, `pick ${reply.type}`);
  if (command.dryRun) count(counters, "W12 dry run");
  if (reply.type === "granted" && reply.observation !== null) count(counters, "A4 grant with an update");
  if (reply.type === "died" && reply.attempt > 1) count(counters, "W5 died again");
  if ("blockersTotal" in reply && (reply.blockersTotal ?? 0) > 16) count(counters, "W11 more than 16 obstacles");
}

export function noteEvents(world: World, events: readonly KernelEvent[]): void {
  const { counters } = world;
  let ends = 0;
  for (const event of events) {
    count(counters, `event ${event.type}`);
    switch (event.type) {
      case "lease.binding":
        tell(world, event.lease, "bind");
        break;
      case "lease.closing":
        tell(world, event.lease, "teardown");
        break;
      case "lease.granted":
        if (event.lease.linkedTo !== null) count(counters, "C7 rename granted");
        if (world.tenants.some(({ id, counted }) => id === event.tenant && counted.includes(event.lease.resource))) {
          count(counters, "C6 units leased");
        }
        break;
      case "lease.expired":
        ends++;
        tellHolder(world, event.lease);
        if (event.reason === "unclaimed") count(counters, "W8 unclaimed");
        break;
      case "lease.released":
        tellHolder(world, event.lease);
        break;
      case "lease.revoked":
        tellHolder(world, event.lease);
        if (event.reason === "wounded") count(counters, "W7 wounded");
        if (event.reason === "idle") count(counters, "L10 revoked as idle");
        if (event.reason === "cell_lost_binding") count(counters, "G6 a cell lost a binding");
        break;
      case "lease.revived":
        count(counters, "L9 held, verified and revived");
        break;
      case "request.granted":
        count(counters, "W3 waiter granted");
        if (event.request.picked.length > 0) count(counters, "W3 waiter with pick granted");
        break;
      default:
        break;
    }
  }
  if (ends >= manyAtOnce) count(counters, "L3 many ends settled at one instant");
}

/** Holders mostly learn of an end on their event stream (G10); some miss it and continue. */
function tellHolder({ tenants, random }: World, { tenant, agentId, id }: Lease): void {
  if (random.chance(0.25)) return;
  const holder = tenants.find((one) => one.id === tenant)?.agents.find((one) => one.id === agentId);
  if (holder !== undefined) holder.leases = holder.leases.filter((known) => known !== id);
}
