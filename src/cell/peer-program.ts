/**
 * Which program is at the other end of a connection, by what the kernel knows and not by what it says of itself. Only
 * for connections from this machine; for others it is not known, and a caveat on it fails.
 *
 * Finding out means to look through the open files of every process. It is done once for a connection, without blocking,
 * and one search at a time serves all that wait: a holder who asks for it often slows nobody down but itself.
 */
import { readdir, readFile, readlink } from "node:fs/promises";
import type { Socket } from "node:net";

interface Sought {
  readonly address: string;
  readonly theirPort: number;
  readonly ourPort: number;
  readonly found: (program: string | null) => void;
}

const known = new WeakMap<Socket, Promise<string | null>>();
let waiting: Sought[] = [];
let isSearching = false;

export function peerProgram(socket: Socket): Promise<string | null> {
  const before = known.get(socket);
  if (before !== undefined) return before;
  const { remoteAddress: address, remotePort: theirPort, localPort: ourPort } = socket;
  const program =
    address === undefined || theirPort === undefined || ourPort === undefined
      ? Promise.resolve(null)
      : new Promise<string | null>((found) => {
          waiting.push({ address, theirPort, ourPort, found });
          if (!isSearching) void search();
        });
  known.set(socket, program);
  return program;
}

async function search(): Promise<void> {
  isSearching = true;
  while (waiting.length > 0) {
    const sought = waiting;
    waiting = [];
    const programs = await programsOf(sought).catch(() => new Map<Sought, string>());
    for (const one of sought) one.found(programs.get(one) ?? null);
  }
  isSearching = false;
}

async function programsOf(sought: readonly Sought[]): Promise<Map<Sought, string>> {
  const byLink = new Map<string, Sought>();
  for (const [one, inode] of await inodesOf(sought)) byLink.set(`socket:[${inode}]`, one);
  const programs = new Map<Sought, string>();
  const pids = byLink.size === 0 ? [] : await readdir("/proc");
  for (const pid of pids) {
    if (programs.size === byLink.size) break;
    if (!/^\d+$/.test(pid)) continue;
    // One that has ended meanwhile, or may not be read by us, has nothing to show.
    for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const one = byLink.get(await readlink(`/proc/${pid}/fd/${fd}`).catch(() => ""));
      if (one === undefined || programs.has(one)) continue;
      const program = await readlink(`/proc/${pid}/exe`).catch(() => null);
      if (program !== null) programs.set(one, program);
    }
  }
  return programs;
}

/** The other end has our ports the other way round, and is only here if the connection is of this machine. */
async function inodesOf(sought: readonly Sought[]): Promise<Map<Sought, string>> {
  const inodes = new Map<Sought, string>();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const text = await readFile(table, "utf8").catch(() => "");
    for (const line of text.split("\n").slice(1)) {
      const [, local = "", remote = "", state, , , , , , inode] = line.trim().split(/\s+/);
      if (state !== "01" || inode === undefined || inode === "0") continue;
      const [theirPort, ourPort] = [portOf(local), portOf(remote)];
      const one = sought.find((wanted) => wanted.theirPort === theirPort && wanted.ourPort === ourPort);
      if (one !== undefined && isAddress(local, one.address)) inodes.set(one, inode);
    }
  }
  return inodes;
}

function portOf(entry: string): number {
  return Number.parseInt(entry.slice(entry.indexOf(":") + 1), 16);
}

/** The table has words in the machine's order; IPv4 may be wrapped in IPv6. Two machines' equal ports are distinguished. */
function isAddress(entry: string, address: string): boolean {
  const words = entry.slice(0, entry.indexOf(":"));
  const v4 = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  if (v4 !== null) return words.endsWith(Buffer.from(v4.slice(1).reverse().map(Number)).toString("hex").toUpperCase());
  return address === "::1" && words === "00000000000000000000000001000000";
}
