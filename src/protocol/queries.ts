/** Questions that change nothing, and their answers, beside the kernel's commands and replies. */
import type { Actor } from "../kernel/commands.ts";
import type { Agent, Key, Lease, LeaseState, Resource, Role, Tenant } from "../kernel/records.ts";
import type { Reply } from "../kernel/replies.ts";
import type { ResourceState } from "./vocabulary.ts";

interface Asked {
  readonly tenant: string;
  readonly actor: Actor;
}
export interface Paging {
  readonly limit: number;
  readonly cursor: string | null;
}

export interface ListAgents extends Asked, Paging {
  readonly type: "list_agents";
  /** "DIE_RESTART" too. */
  readonly state: string | null;
}
export interface GetAgent extends Asked {
  readonly type: "get_agent" | "get_digest";
  readonly agentId: string;
}
export interface ListLeases extends Asked, Paging {
  readonly type: "list_leases";
  readonly resource: string | null;
  readonly agentId: string | null;
  readonly state: LeaseState | null;
}
export interface GetLease extends Asked {
  readonly type: "get_lease";
  readonly leaseId: string;
}
export interface ListResources extends Asked, Paging {
  readonly type: "list_resources";
  readonly prefix: string | null;
  readonly state: ResourceState | null;
}
export interface ListCells extends Asked, Paging {
  readonly type: "list_cells";
}
export interface ListTenants extends Asked, Paging {
  readonly type: "list_tenants";
}
export interface ListKeys extends Asked, Paging {
  readonly type: "list_keys";
  readonly tenantId: string | null;
  readonly role: Role | null;
}

export type Query = ListAgents | GetAgent | ListLeases | GetLease | ListResources | ListCells | ListTenants | ListKeys;

/** A process that hosts resources (G6). */
export interface Cell {
  readonly id: string;
  readonly ready: boolean;
  /** How many it hosts. */
  readonly resources: number;
}

interface Listed {
  readonly nextCursor: string | null;
}
/** One page of a list. Single records are answered with the kernel's own replies. */
export type Page =
  | (Listed & { readonly type: "agent_page"; readonly agents: readonly Agent[] })
  | (Listed & { readonly type: "lease_page"; readonly leases: readonly Lease[] })
  | (Listed & { readonly type: "resource_page"; readonly resources: readonly Resource[] })
  | (Listed & { readonly type: "cell_page"; readonly cells: readonly Cell[] })
  | (Listed & { readonly type: "tenant_page"; readonly tenants: readonly Tenant[] })
  | (Listed & { readonly type: "key_page"; readonly keys: readonly Key[] });

export type QueryReply = Reply | Page;

/** Several kernel commands at once: every resource that the cell hosts is withdrawn (G12). */
export interface WithdrawCell extends Asked {
  readonly type: "withdraw_cell";
  readonly cell: string;
  readonly revoke: boolean;
}
