/** A control group (cgroup v2): the kernel's own list of a tree of processes, which none of them can leave. */
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StillAlive } from "./process-tree.ts";

const lookAgainMs = 10;

export class ControlGroup {
  readonly folder: string;

  /** A new one, under a folder that the cell may write to. */
  constructor(parent: string, name: string) {
    this.folder = join(parent, name);
    mkdirSync(this.folder, { recursive: true });
  }

  /** The command that puts itself into the group and then becomes the given one: it is never outside. */
  enter(command: readonly string[]): readonly string[] {
    return ["/bin/sh", "-c", 'echo 0 > "$1/cgroup.procs" && shift && exec "$@"', "sh", this.folder, ...command];
  }

  members(): readonly number[] {
    const text = readFileSync(join(this.folder, "cgroup.procs"), "utf8");
    return text.split("\n").filter(Boolean).map(Number);
  }

  async end(killMs: number): Promise<void> {
    const giveUpAt = performance.now() + killMs;
    while (!this.isEmpty()) {
      if (performance.now() >= giveUpAt) throw new StillAlive(this.members());
      writeFileSync(join(this.folder, "cgroup.kill"), "1");
      await sleep(lookAgainMs);
    }
    rmdirSync(this.folder);
  }

  private isEmpty(): boolean {
    return /^populated 0$/m.test(readFileSync(join(this.folder, "cgroup.events"), "utf8"));
  }
}
