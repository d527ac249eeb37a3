/** The schema of every error body: the code, a sentence, and the context that the contract describes for refusals. */
import { whereGiven } from "../../kernel/contract/field.ts";
import { refusalContext } from "../../kernel/contract/replies.ts";
import { parts } from "../schema/from-fields.ts";
import { type Node, record, type TSchema } from "../schema/schema.ts";
import { errorCodes } from "./errors.ts";

/** Of the edge's own errors too, where they have fields of these names. */
const contextSchema: TSchema = record(
  parts(whereGiven(refusalContext), {
    field: "The field at fault, as a dotted path.",
    reason: "Why, in a word or two.",
    from: "The state that it is in.",
    to: "The state that was asked for.",
    missing: "Tasks that are not known.",
    quota: "The quota that is full.",
    used: "How far it is used.",
    limit: "What it is.",
  }),
);

const { properties: contextShapes }: Node = contextSchema;

/** What every error has; which context goes with it depends on the code. */
export const errorShape: Node = {
  title: "Error",
  type: "object",
  required: ["error", "detail"],
  properties: {
    ...contextShapes,
    error: { type: "string", enum: errorCodes },
    detail: { type: "string", description: "A sentence: what is wrong, and what to do." },
  },
  additionalProperties: true,
};
