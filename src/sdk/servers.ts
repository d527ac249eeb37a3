/**
 * The servers that a client knows, any of which takes any request. One is used as long as it works; when it does not answer,
 * or knows no leader, the next one is. Each has connections and, on this machine, an owner's token of its own.
 */
import { defaultUrl } from "../names/defaults.ts";
import { splitAddresses } from "../trust/addresses.ts";
import { insecureWords, mayCarrySecret } from "../trust/loopback.ts";
import { addressOf, mayHaveOwner } from "./address.ts";
import type { Lane } from "./lane.ts";
import { OwnerLogin } from "./owner-login.ts";

export class Server {
  /** By the secret that they carry. */
  readonly lanes = new Map<string, Lane>();
  /** Whose token its requests go with, where no key was given and the server is on this machine. */
  readonly owner: OwnerLogin | null;
  private readonly address: string;

  constructor(address: string, hasKey: boolean) {
    this.address = address;
    this.owner = !hasKey && mayHaveOwner(address) ? new OwnerLogin(address) : null;
  }

  get url(): string {
    return this.owner?.url ?? this.address;
  }

  close(): void {
    for (const lane of this.lanes.values()) lane.close();
    this.lanes.clear();
  }
}

export class Servers {
  readonly all: readonly Server[];
  /** What tells two clients' sets apart. */
  readonly name: string;
  private readonly addresses: readonly string[];
  private at = 0;

  constructor(addresses: readonly string[], hasKey: boolean) {
    this.addresses = addresses;
    this.all = addresses.map((address) => new Server(address, hasKey));
    this.name = addresses.join(",");
  }

  get present(): Server {
    const server = this.all[this.at];
    if (server === undefined) throw new TypeError("A client needs the address of a server.");
    return server;
  }

  /** It did not answer. Of many calls that find so only the first moves on. */
  leave(server: Server): void {
    if (this.all[this.at] === server) this.at = (this.at + 1) % this.all.length;
  }

  /** Whatever server comes next may get the credential, so all of them have to be ones that may. */
  assertMayCarrySecret(): void {
    const insecure = this.addresses.find((address) => !mayCarrySecret(address));
    if (insecure !== undefined) throw new TypeError(`${insecureWords(insecure)}, or \`insecure: true\`.`);
  }
}

/** What a client was given: one address, several, or a text with commas between them. */
export function addressesOf(url: string | undefined, urls: readonly string[] | undefined): readonly string[] {
  if (url !== undefined && urls !== undefined) throw new TypeError("Give `url` or `urls`, not both.");
  const given = urls ?? (url === undefined ? [defaultUrl] : splitAddresses(url));
  if (given.length === 0) throw new TypeError(`No server is named; write its address like ${defaultUrl}.`);
  return [...new Set(given.map(addressOf))];
}
