/** `depotgate.*`: the artifact store, under the names of DepotGate. An artifact's id is the SHA-256 of its bytes. */
import { limits } from "../../protocol/schema/limits.ts";
import { choice, integer, list, optional, record, text, time } from "../../protocol/schema/schema.ts";
import { counted } from "../sentences.ts";
import type { Tool } from "../tool.ts";
import { gateTool, words } from "./gate-tool.ts";

const roles = ["plan", "final_output", "supporting", "intermediate"] as const;
const role = optional(choice(roles, { description: "supporting if left out." }));
const task = text({ minLength: 1, maxLength: limits.keyLengthMax, description: "The task that it belongs to." });
const staged = {
  artifact_id: text({ description: "SHA-256 of the bytes, in hex." }),
  location: text({ description: "`leasehold://artifacts/<sha256>`, which GET /v1/artifacts serves." }),
  size_bytes: integer(),
  mime_type: text(),
  content_hash: text(),
  artifact_role: text(),
  root_task_id: text(),
  staged_at: time(),
};

export const depotgateTools: readonly Tool[] = [
  gateTool({
    name: "depotgate.stage_artifact",
    title: "Stage an artifact",
    description: "Stores bytes for a task, and returns where they are. The same bytes twice are one artifact.",
    operations: ["put_artifact"],
    fields: {
      root_task_id: task,
      content_base64: text({ maxLength: limits.bodyBytesMax, description: "The bytes, in base64." }),
      mime_type: words("application/octet-stream if left out."),
      artifact_role: role,
      produced_by_receipt_id: words("The receipt that it comes from."),
    },
    shape: record(staged),
    async depot(depot, input, credential) {
      const { root_task_id: taskId, content_base64: encoded, mime_type: mime, artifact_role: of } = input;
      const { produced_by_receipt_id: receiptId } = input;
      const bytes = bytesOf(String(encoded));
      if (bytes === null) return { status: 400, body: notBase64 };
      const said = {
        taskId: String(taskId),
        mime: typeof mime === "string" ? mime : "application/octet-stream",
        role: typeof of === "string" ? of : "supporting",
        receiptId: typeof receiptId === "string" ? receiptId : null,
      };
      return depot.stage(said, bytes, credential);
    },
    sentence: "Artifact {artifact_id} is stored, {size_bytes} bytes.",
  }),
  gateTool({
    name: "depotgate.get_artifact",
    title: "Show an artifact",
    description: "Shows what is known of an artifact that was staged; its bytes are at its location.",
    operations: ["get_artifact"],
    fields: { artifact_id: text({ minLength: 64, maxLength: 64, description: "SHA-256 of its bytes, in hex." }) },
    shape: record(staged),
    depot: (depot, { artifact_id: id }, credential) => depot.get(String(id), credential),
    sentence: "Artifact {artifact_id}: {size_bytes} bytes of {mime_type}.",
  }),
  gateTool({
    name: "depotgate.list_staged_artifacts",
    title: "List a task's artifacts",
    description: "Lists what was staged for a task, the oldest first.",
    operations: ["get_artifact"],
    fields: { root_task_id: task, artifact_role: optional(choice(roles)) },
    shape: record({ root_task_id: text(), artifacts: list(record(staged)) }),
    depot: (depot, { root_task_id: taskId, artifact_role: of }, credential) =>
      depot.list(String(taskId), typeof of === "string" ? of : null, credential),
    sentence: (body) => counted(body, "artifacts", "artifact", "Nothing is staged for it."),
  }),
];

/** Node's decoder takes anything; what is not base64 must not be stored as something else. */
function bytesOf(encoded: string): Uint8Array | null {
  const isBase64 = encoded.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(encoded);
  return isBase64 ? Buffer.from(encoded, "base64") : null;
}

const notBase64 = {
  error: "invalid_request",
  detail: "content_base64 is not base64; send the bytes in standard base64, with its padding.",
  field: "content_base64",
};
