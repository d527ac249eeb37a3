/** How the gateways of cells refuse and fail, in a closed list, for cells and for clients of them (G9). */
import type { CellEndCode } from "./cell-link.ts";

/** What an operation at a gateway can be answered with, and the status of that in HTTP. */
export const gatewayStatuses = {
  invalid_request: 400,
  token_invalid: 401,
  stale_token: 401,
  caveat_failed: 401,
  program_not_allowed: 403,
  path_not_allowed: 403,
  environment_not_allowed: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  run_timeout: 408,
  conflict: 409,
  lease_expired: 410,
  lease_released: 410,
  lease_revoked: 410,
  payload_too_large: 413,
  range_not_satisfiable: 416,
  resource_fenced: 423,
  driver_failed: 500,
  upstream_failed: 502,
  too_many_connections: 503,
  too_many_runs: 503,
  cell_not_ready: 503,
  upstream_timeout: 504,
} as const satisfies Record<CellEndCode, number> & Record<string, number>;

export type GatewayCode = keyof typeof gatewayStatuses;
