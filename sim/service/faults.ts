/** Faults of the service itself, at random times. */
import type { ServiceWorld } from "./service-world.ts";

export async function trouble(world: ServiceWorld): Promise<void> {
  const { random, time, service } = world;
  while (!world.isOver && !world.isCalm) {
    await time.sleep(random.between(500, 20_000));
    if (world.isOver || world.isCalm || !service.isServing) continue;
    switch (random.weighted({ lost: 4, stored: 4, throws: 4, kill: 3, restart: 1 })) {
      case "lost":
        service.failNextCommit("lost");
        break;
      case "stored":
        service.failNextCommit("stored");
        break;
      case "throws":
        service.throwAtChange(random.between(1, 12));
        break;
      case "kill":
        world.crash = () => service.kill();
        break;
      case "restart":
        world.crash = () => service.restart();
        break;
    }
  }
}
