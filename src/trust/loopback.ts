/** Which addresses are this machine's own, and where a credential may be sent (S5). Runs in browsers too. */

const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const loopbackV4 = new RegExp(`^127(?:\\.${octet}){3}$`);

export function isLoopback(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare === "::1" || loopbackV4.test(bare);
}

/** Over TLS, or without leaving the machine. */
export function mayCarrySecret(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || isLoopback(hostname);
}

/** In the words of every client that refuses. */
export function insecureWords(url: string): string {
  return (
    `${url} is neither https nor on this machine, so that a credential would be readable on the way; ` +
    "use https://, or accept that with --insecure or LEASEHOLD_INSECURE=1"
  );
}

/** What was asked for cannot be trusted, or not read; the message says what to do. */
export class TrustProblem extends Error {
  override readonly name = "TrustProblem";
}
