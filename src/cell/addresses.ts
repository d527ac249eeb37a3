/** Which addresses a webhook may go to: by default public ones only, so that a cell cannot be used to reach a private network. */
import { lookup as lookUpName } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { NothingBegun } from "./driver.ts";

/** Not reachable from outside, or not meant to be (RFC 6890 and its followers). */
const notPublic =
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 " +
  "192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 " +
  "::/128 ::1/128 100::/64 2001:db8::/32 fc00::/7 fe80::/10 fec0::/10 ff00::/8 " +
  // Ways to write an IPv4 address within an IPv6 one, and tunnels to anywhere.
  "::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 2002::/16 2001::/32";

type Family = "ipv4" | "ipv6";

/** A list for each family: in a common one, the IPv6 range that holds every IPv4 address would match all of them. */
type Lists = Readonly<Record<Family, BlockList>>;

export class AddressGuard {
  private readonly blocked = listsOf(notPublic.split(" "));
  private readonly allowed: Lists;
  private readonly allowPrivate: boolean;

  /** `allow` names exceptions, such as 10.1.0.0/16. */
  constructor(allowPrivate: boolean, allow: readonly string[]) {
    this.allowPrivate = allowPrivate;
    this.allowed = listsOf(allow);
  }

  permits(address: string): boolean {
    if (this.allowPrivate) return true;
    const bare = address.replace(/%.*$/, "");
    const real = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1] ?? bare;
    if (isIP(real) === 0) return false;
    const family = familyOf(real);
    return this.allowed[family].check(real, family) || !this.blocked[family].check(real, family);
  }

  /**
   * For a request: looks a name up and gives only what is permitted to the very connection that asked. A name that
   * means something else a moment later gains nothing by it.
   */
  readonly lookup: LookupFunction = (hostname, options, callback) => {
    lookUpName(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return void callback(error, "", 0);
      const permitted = found.filter(({ address }) => this.permits(address));
      const [first] = permitted;
      if (first === undefined) return void callback(new NotPermitted(hostname), "", 0);
      if (options.all === true) callback(null, permitted);
      else callback(null, first.address, first.family);
    });
  };
}

function listsOf(networks: readonly string[]): Lists {
  const lists: Lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const network of networks) {
    const [net = "", bits] = network.split("/");
    const family = familyOf(net);
    lists[family].addSubnet(net, Number(bits ?? (family === "ipv4" ? 32 : 128)), family);
  }
  return lists;
}

function familyOf(address: string): Family {
  return address.includes(":") ? "ipv6" : "ipv4";
}

export class NotPermitted extends NothingBegun {
  override name = "NotPermitted";

  constructor(host: string) {
    super(`${host} is a private address, and webhooks go to public ones only unless allow_private or allow says so`);
  }
}

export function isNetwork(text: string): boolean {
  const [net = "", bits, ...rest] = text.split("/");
  const kind = isIP(net);
  if (kind === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (kind === 4 ? 32 : 128));
}
