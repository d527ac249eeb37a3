/** A small store for what is too large for a task or a receipt, named by its content. The edge serves it itself. */

import { page } from "../leases/shapes.ts";
import { delegating, following, watching } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { flag, integer, nullable, record, text } from "../schema/schema.ts";

const { edge } = operationsOf("Artifacts");

const sha256 = text({ minLength: 64, maxLength: 64, description: "SHA-256 of the bytes, in lower-case hex." });

export const putArtifact = edge({
  name: "put_artifact",
  method: "PUT",
  path: "/v1/artifacts",
  takesBytes: true,
  roles: delegating,
  summary: "Stores an artifact",
  description:
    "The body is taken as it is, of any type. The same bytes twice are one artifact. With the header `Leasehold-Sha256` " +
    "they are held against that checksum. Artifacts count against the tenant's quotas, and are not part of backups. One " +
    "that no task and no receipt points to is deleted after `--artifacts-keep-ms`.",
  replies: [
    ok(
      record({ pointer: text({ description: "`leasehold://artifacts/<sha256>`" }), sha256, size: integer() }),
      "Stored.",
      201,
    ),
  ],
  errors: ["artifact_too_large", "artifact_mismatch", "artifact_space_exhausted", "tenant_suspended"],
});

export const listArtifacts = edge({
  name: "list_artifacts",
  path: "/v1/artifacts",
  fields: { ...paging },
  roles: watching,
  summary: "Lists artifacts",
  description: "In the order of their checksums.",
  example: { limit: 20 },
  replies: [
    ok(
      page(
        "artifacts",
        record({
          sha256,
          size: integer(),
          stored_at: nullable(text({ description: "When it was stored last; null where something points to it." })),
          referenced: flag({ description: "A task or a receipt has pointed to it, so that it is kept." }),
        }),
      ),
      "One page.",
    ),
  ],
});

export const deleteArtifact = edge({
  name: "delete_artifact",
  method: "DELETE",
  path: "/v1/artifacts/{sha256}",
  fields: { sha256 },
  roles: delegating,
  summary: "Deletes an artifact",
  description:
    "For operators and supervisors, and for the credential that stored it while the server remembers: since its start, " +
    "and of the last 100,000. What points to it then points to nothing.",
  example: { sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" },
  replies: [ok(record({ sha256, deleted: flag() }), "Deleted.")],
  errors: ["artifact_unknown"],
});

export const getArtifact = edge({
  name: "get_artifact",
  path: "/v1/artifacts/{sha256}",
  fields: { sha256 },
  roles: following,
  summary: "Fetches an artifact",
  description: "As bytes, whatever they are.",
  example: { sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" },
  replies: [{ ...ok(text({ description: "The bytes." }), "The artifact."), mediaType: "application/octet-stream" }],
  errors: ["artifact_unknown"],
});
