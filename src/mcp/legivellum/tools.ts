/** The tools of `/mcp/legivellum`. */
import { asyncgateTools } from "./asyncgate.ts";
import { receiptgateTools } from "./receiptgate.ts";

export const legivellumTools = [...asyncgateTools, ...receiptgateTools];
