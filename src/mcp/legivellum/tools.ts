/** The tools of `/mcp/legivellum`. */
import type { Tool } from "../tool.ts";
import { taskerTools } from "./asyncgate-tasker.ts";
import { workerTools } from "./asyncgate-worker.ts";
import { receiptTools } from "./receiptgate.ts";

export const legivellumTools: readonly Tool[] = [...taskerTools, ...workerTools, ...receiptTools];
