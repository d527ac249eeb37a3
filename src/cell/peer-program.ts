/**
 * Which program is at the other end of a connection, by what the kernel knows and not by what it says of itself. Only
 * for connections from this machine; for others it is not known, and a caveat on it fails.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Socket } from "node:net";

export function peerProgram(socket: Socket): string | null {
  const { remoteAddress, remotePort, localPort } = socket;
  if (remoteAddress === undefined || remotePort === undefined || localPort === undefined) return null;
  try {
    const inode = socketInode(remotePort, localPort, remoteAddress);
    return inode === null ? null : ownerOf(inode);
  } catch {
    return null;
  }
}

/** The other end has our ports the other way round, and is only here if the connection is of this machine. */
function socketInode(theirPort: number, ourPort: number, theirAddress: string): string | null {
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    for (const line of readTable(table)) {
      const [, local = "", remote = "", state, , , , , , inode] = line.trim().split(/\s+/);
      const isEstablished = state === "01";
      if (!isEstablished || portOf(local) !== theirPort || portOf(remote) !== ourPort) continue;
      if (!isAddress(local, theirAddress) || inode === undefined || inode === "0") continue;
      return inode;
    }
  }
  return null;
}

function readTable(table: string): readonly string[] {
  try {
    return readFileSync(table, "utf8").split("\n").slice(1);
  } catch {
    return [];
  }
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

function ownerOf(inode: string): string | null {
  const wanted = `socket:[${inode}]`;
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      for (const fd of readdirSync(`/proc/${pid}/fd`)) {
        if (readlinkSync(`/proc/${pid}/fd/${fd}`) === wanted) return readlinkSync(`/proc/${pid}/exe`);
      }
    } catch {
      // It has ended meanwhile, or may not be read by us.
    }
  }
  return null;
}
