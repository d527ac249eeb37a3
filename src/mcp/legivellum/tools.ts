/** The tools of `/mcp/legivellum`. */
import { taskerTools } from "./asyncgate-tasker.ts";
import { workerTools } from "./asyncgate-worker.ts";
import { depotgateTools } from "./depotgate.ts";
import { receiptgateTools } from "./receiptgate.ts";

export const legivellumTools = [...taskerTools, ...workerTools, ...receiptgateTools, ...depotgateTools];
