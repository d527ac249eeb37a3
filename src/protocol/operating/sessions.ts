/** Operating: signing in with a browser (S5). Programs show their key with every request and need none of this. */
import { ok, operationsOf } from "../operation.ts";
import { limits } from "../schema/limits.ts";
import { choice, flag, integer, nullable, optional, record, text, time } from "../schema/schema.ts";
import { roles } from "../schema/vocabulary.ts";
import { guarding } from "./roles.ts";

const { edge } = operationsOf("Operating");

const session = record(
  {
    signed_in: flag({
      description: "Whether this request may do anything, by its cookie, its header or without either.",
    }),
    sign_in: choice(["none", "key", "link"], {
      description: "What a sign-in takes: nothing on loopback without keys, a key, or the link of `leasehold open`.",
    }),
    role: nullable(choice(roles, { description: "What the caller may do." })),
    tenant_id: nullable(text({ description: "Of the credential." })),
    key_id: nullable(text({ description: "Of the key; null without one." })),
    csrf_token: nullable(
      text({ description: "To be sent as `Leasehold-Csrf` with all but GET; null where no cookie was shown." }),
    ),
    expires_at: nullable(time({ description: "When the session or its key ends; null: never." })),
    now: time({ description: "The server's time." }),
    version: text({ description: "Of the server." }),
  },
  { title: "Session" },
);

export const getSession = edge({
  name: "get_session",
  path: "/v1/session",
  roles: "anyone",
  summary: "Says who the caller is",
  description: "By the cookie of a session, by `Authorization`, or without either on loopback.",
  replies: [ok(session, "Who it is, or how to sign in.")],
});

export const createSession = edge({
  name: "create_session",
  method: "POST",
  path: "/v1/session",
  fields: {
    key: optional(
      text({
        maxLength: limits.tokenLengthMax,
        description: "A key as it was shown when it was created, or an agent's token.",
      }),
    ),
    code: optional(text({ maxLength: limits.labelLengthMax, description: "Of a link; good once." })),
  },
  exactlyOne: ["key", "code"],
  roles: "anyone",
  summary: "Signs a browser in",
  description:
    "The answer sets an HttpOnly, SameSite=Strict cookie that stands for the key, for 12 hours at most; it ends with the " +
    "key. With it, all but GET needs the header `Leasehold-Csrf`.",
  example: { key: "lhk_…" },
  replies: [ok(session, "Signed in.", 201)],
  errors: ["unauthorized", "invalid_request", "origin_not_allowed", "rate_limited"],
});

export const endSession = edge({
  name: "end_session",
  method: "DELETE",
  path: "/v1/session",
  roles: "anyone",
  summary: "Signs a browser out",
  description:
    "The browser forgets the cookie, and the server refuses every copy of it; after a restart or a fail-over of the server a " +
    "copy counts again until its end. To end all sessions of a key, rotate or delete the key.",
  replies: [ok(session, "Signed out.")],
});

export const createSessionLink = edge({
  name: "create_session_link",
  method: "POST",
  path: "/v1/session/link",
  roles: guarding,
  summary: "Makes a link that signs a browser in once",
  description:
    "For `leasehold open`: the link stands for the credential that asked for it, is good once and for one minute. The code " +
    "is behind `#`, so that no log has it. Tokens of agents are not taken.",
  replies: [
    ok(
      record({
        path: text({ description: "Below the server's address." }),
        expires_in_ms: integer({ description: "How long it can be used." }),
      }),
      "The link.",
      201,
    ),
  ],
});
