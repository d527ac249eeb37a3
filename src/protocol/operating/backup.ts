/** Operating: a copy of everything, taken while the server runs (S6). */
import { ok, operationsOf } from "../operation.ts";
import { text } from "../schema/schema.ts";
import { operating } from "./roles.ts";

const { edge } = operationsOf("Operating");

export const backup = edge({
  name: "backup",
  method: "POST",
  path: "/v1/backup",
  roles: operating,
  summary: "Takes a backup",
  description:
    "All tenants, as of one moment, as a file for the `restore` command. Restoring it makes every older fence and token " +
    "stale (S6).",
  replies: [
    { ...ok(text({ description: "An SQLite database." }), "The backup."), mediaType: "application/octet-stream" },
  ],
});
