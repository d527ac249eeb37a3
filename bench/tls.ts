/**
 * What TLS costs: the same load over the stream against a server with plain HTTP and one with TLS, in turns in one run, so
 * that both see the same machine. Prints the medians and their ratio; TLS may cost 15 % at most.
 *
 *   node bench/tls.ts [SECONDS] [ROUNDS]
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testAuthority } from "../src/trust/testing/certificates.ts";
import { format, median, removeFolder, runLoad, startLeasehold } from "./children.ts";

const shareMin = 0.85;
const connections = 16;
const [seconds = 4, rounds = 5] = process.argv.slice(2).map(Number);

const folder = mkdtempSync(join(tmpdir(), "leasehold-bench-tls-"));
const authority = testAuthority();
const { cert, key } = authority.server();
const put = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};
const tls = { cert: put("cert.pem", cert), key: put("key.pem", key), ca: put("ca.pem", authority.cert) };

const plain = await startLeasehold();
const secure = await startLeasehold(undefined, tls);
const rates = { plain: [] as number[], tls: [] as number[] };
try {
  for (let round = 0; round < rounds; round++) {
    const asked = [connections, seconds, 64, 2] as const;
    rates.plain.push((await runLoad<{ readonly rate: number }>("load-stream.ts", plain.port, ...asked)).rate);
    rates.tls.push((await runLoad<{ readonly rate: number }>("load-stream.ts", secure.port, ...asked, tls.ca)).rate);
  }
} finally {
  for (const { stop, dataFolder } of [plain, secure]) {
    await stop();
    removeFolder(dataFolder);
  }
  removeFolder(folder);
}
const share = median(rates.tls) / median(rates.plain);
console.log(`plain ${format(median(rates.plain))}/s, TLS ${format(median(rates.tls))}/s: ${share.toFixed(2)} of it`);
process.exitCode = share >= shareMin ? 0 : 1;
