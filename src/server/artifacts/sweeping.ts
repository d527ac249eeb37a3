/** S4: artifacts that nothing points to do not stay for ever, and the count of what there is is made again now and then. */
import type { EngineLog } from "../../engine/engine-types.ts";
import type { Config } from "../config/config.ts";
import type { ArtifactFiles } from "./artifact-files.ts";
import type { StagedArtifacts } from "./staged-artifacts.ts";

/** Returns how to stop. */
export function startSweeping(
  files: ArtifactFiles,
  staged: StagedArtifacts,
  { artifactsKeepMs, artifactsSweepMs }: Pick<Config, "artifactsKeepMs" | "artifactsSweepMs">,
  log: EngineLog,
): () => void {
  let isBusy = false;
  let isStopped = false;
  const sweep = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    try {
      const deleted = await files.sweep(Date.now() - artifactsKeepMs);
      await staged.sweep();
      if (deleted > 0) log.info({ deleted }, "artifacts that nothing points to were deleted");
    } catch (fault) {
      if (!isStopped) log.warn({ err: fault }, "artifacts could not be looked through; it is tried again later");
    } finally {
      isBusy = false;
    }
  };
  const timer = setInterval(() => void sweep(), artifactsSweepMs);
  timer.unref();
  return () => {
    isStopped = true;
    clearInterval(timer);
  };
}
