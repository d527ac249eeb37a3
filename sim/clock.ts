/** How time advances: mostly a little, often to the exact millisecond of a deadline, sometimes far. */
import { nextDeadline } from "../src/kernel/kernel.ts";
import type { World } from "./world.ts";

const week = 7 * 24 * 3_600_000;

const habits = {
  small: { stay: 4_500, little: 3_500, deadline: 800, justBefore: 300, seconds: 200, minutes: 4, week: 3 },
  large: { stay: 8_500, little: 1_200, deadline: 150, justBefore: 50, seconds: 40, minutes: 3, week: 3 },
};

export function passTime(world: World): void {
  const { random } = world;
  switch (random.weighted(habits[world.size])) {
    case "stay":
      return;
    case "little":
      world.now += random.between(1, world.size === "small" ? 300 : 40);
      return;
    case "deadline":
      world.now = Math.max(world.now, nearDeadline(world));
      return;
    case "justBefore":
      world.now = Math.max(world.now, nearDeadline(world) - 1);
      return;
    case "seconds":
      world.now += random.between(1_000, 9_000);
      return;
    case "minutes":
      world.now += random.between(60_000, 700_000);
      return;
    case "week":
      world.now += week + random.below(1_000);
      return;
  }
}

/** Far deadlines are left to the long jumps: once everything has expired nothing conflicts. */
function nearDeadline({ state, now }: World): number {
  const next = nextDeadline(state);
  return next - now > 40_000 ? now : next;
}
