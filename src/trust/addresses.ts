/**
 * Several servers in one text, as LEASEHOLD_URL, `--url`, profiles and `.leasehold.json` have them: addresses with commas
 * between. All are of one cluster, and any of them takes any request. Guards and browsers load this; so it imports nothing.
 */

/** In their order, each once, without a slash at the end. */
export function splitAddresses(text: string): readonly string[] {
  const found = text.split(",").map((one) => one.trim().replace(/\/+$/, ""));
  return [...new Set(found.filter((one) => one !== ""))];
}

export function joinAddresses(urls: readonly string[]): string {
  return urls.join(",");
}
