/** What a task has leased on cells, for the command that works on it: a file that always has the tokens of the moment. */
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskContext } from "../../sdk/task-run.ts";

export class LeasesFile {
  readonly path: string;
  private readonly folder: string;
  private readonly context: Pick<TaskContext, "leases" | "live">;
  private readonly unsubscribe: (() => void)[];

  constructor(context: Pick<TaskContext, "leases" | "live">) {
    this.context = context;
    this.folder = mkdtempSync(join(tmpdir(), "leasehold-leases-"));
    chmodSync(this.folder, 0o700);
    this.path = join(this.folder, "leases.json");
    this.write();
    this.unsubscribe = context.live.map((lease) => lease.onToken(() => this.write()));
  }

  delete(): void {
    for (const stop of this.unsubscribe) stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** In one step, so that no reader meets half of it. */
  private write(): void {
    const leases = this.context.leases.map(({ resource, id, fence, coordinate = null, token = null }) => {
      return { resource, lease_id: id, fence, coordinate, token };
    });
    const next = `${this.path}.next`;
    writeFileSync(next, `${JSON.stringify(leases)}\n`, { mode: 0o600 });
    renameSync(next, this.path);
  }
}
