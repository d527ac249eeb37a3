/** The artifact store for MCP tools: the same roles and refusals as over HTTP. */
import { whyNotRead } from "../../kernel/views.ts";
import type { Body, Credential, Depot, Reply } from "../../mcp/control-plane.ts";
import { type Answer, bodyObject, errorAnswer, refusalAnswer } from "../../protocol/answers/answer.ts";
import type { Operation } from "../../protocol/operation.ts";
import { getArtifact, putArtifact } from "../../protocol/receipts/artifacts.ts";
import type { Caller, Service } from "../service.ts";
import { problemAnswer, suspended, unknownArtifact } from "./artifacts.ts";
import type { StagedArtifact, StagedArtifacts } from "./staged-artifacts.ts";

/** Who a call is by, or why nobody. */
export type CallerFor = (agentToken: string | null) => Caller | Answer;

export function depotOf(service: Service, staged: StagedArtifacts, callerFor: CallerFor): Depot {
  /** The tenant, or why not. */
  const admit = async ({ roles }: Operation, { agentToken }: Credential): Promise<string | Answer> => {
    const caller = callerFor(agentToken);
    if (!("actor" in caller)) return caller;
    const { role } = caller.actor;
    if (roles !== "anyone" && !roles.includes(role))
      return errorAnswer("forbidden", `A key with the role ${role} may not do this.`);
    const refused = await service.engine.ask((state, now) => {
      const refusal = whyNotRead(state, caller);
      return refusal === null ? null : refusalAnswer(refusal, now);
    });
    return refused ?? caller.tenant;
  };

  return {
    async stage(staging, bytes, credential) {
      const tenant = await admit(putArtifact, credential);
      if (typeof tenant !== "string") return replyOf(tenant);
      if (service.uses.isSuspended(tenant)) return replyOf(suspended);
      const quotas = service.uses.quotasOf(tenant);
      const stored = await staged.stage(tenant, staging, bytes, { now: service.engine.now(), quotas });
      if (typeof stored === "string" || "quota" in stored) return replyOf(problemAnswer(stored, staged.bytesMax));
      return { status: 201, body: shownAs(stored) };
    },
    async get(artifactId, credential) {
      const tenant = await admit(getArtifact, credential);
      if (typeof tenant !== "string") return replyOf(tenant);
      const found = await staged.find(tenant, artifactId);
      return found === null ? replyOf(unknownArtifact) : { status: 200, body: shownAs(found) };
    },
    async list(taskId, role, credential) {
      const tenant = await admit(getArtifact, credential);
      if (typeof tenant !== "string") return replyOf(tenant);
      const found = await staged.ofTask(tenant, taskId);
      const artifacts = found.filter((one) => role === null || one.role === role).map(shownAs);
      return { status: 200, body: { root_task_id: taskId, artifacts } };
    },
  };
}

function shownAs({ sha256, size, mime, role, taskId, stagedAt }: StagedArtifact) {
  return {
    artifact_id: sha256,
    location: `leasehold://artifacts/${sha256}`,
    size_bytes: size,
    mime_type: mime,
    content_hash: sha256,
    artifact_role: role,
    root_task_id: taskId,
    staged_at: new Date(stagedAt).toISOString(),
  };
}

function replyOf(answer: Answer): Reply {
  return { status: answer.status, body: bodyObject(answer) as Body };
}
