/** The peers' own clients, from this folder's node_modules. They are not dependencies of the project, so their types are ours. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** Installs this folder's packages if they are missing. */
export function installPeers(): void {
  if (existsSync(join(import.meta.dirname, "node_modules", ".package-lock.json"))) return;
  console.error("bench:peers: installing the peers' clients with npm; about half a minute");
  const { status } = spawnSync("npm", ["install", "--no-save", "--no-audit", "--no-fund"], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error("npm could not install them; its output is above.");
}

export async function loadPeer<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}

export interface RedisClient {
  set(key: string, value: string, px: "PX", ms: number, nx: "NX"): Promise<"OK" | null>;
  eval(script: string, keys: number, ...args: string[]): Promise<number>;
  quit(): Promise<unknown>;
}

export interface SqlClient {
  (strings: TemplateStringsArray, ...values: unknown[]): Promise<readonly Record<string, unknown>[]>;
  end(): Promise<void>;
}

export interface EtcdLease {
  grant(): Promise<string>;
  revoke(): Promise<unknown>;
}
export interface EtcdClient {
  lease(seconds: number, options: { readonly autoKeepAlive: boolean }): EtcdLease;
  put(key: string): { value(text: string): { lease(id: string): unknown } };
  delete(): { key(key: string): Promise<unknown> };
  if(
    key: string,
    column: "Create",
    comparison: "==",
    value: number,
  ): {
    then(put: unknown): { commit(): Promise<{ readonly succeeded: boolean }> };
  };
  close(): void;
}

export interface Lockfile {
  lock(path: string, options: object): Promise<() => Promise<void>>;
}
