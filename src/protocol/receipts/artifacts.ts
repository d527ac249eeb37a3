/** A small store for what is too large for a task or a receipt, named by its content. The edge serves it itself. */

import { delegating, following } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { integer, record, text } from "../schema/schema.ts";

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
    "they are held against that checksum. Artifacts are not part of backups.",
  replies: [
    ok(
      record({ pointer: text({ description: "`leasehold://artifacts/<sha256>`" }), sha256, size: integer() }),
      "Stored.",
      201,
    ),
  ],
  errors: ["artifact_too_large", "artifact_mismatch", "artifact_space_exhausted"],
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
