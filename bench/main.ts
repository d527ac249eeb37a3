/**
 * The service beside a bare echo server of the same framework, in one run on one machine, every change durable before
 * it is answered. Absolute figures depend on the machine; compare the ratios.
 *
 *   npm run bench [-- --quick]
 */
import { format, median, removeFolder, runLoad, startEcho, startLeasehold } from "./children.ts";
import { measureFsync } from "./durability.ts";

const isQuick = process.argv.includes("--quick");
const seconds = isQuick ? 2 : 5;
const rounds = isQuick ? 1 : 3;

interface Load {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
}

const echo = await startEcho();
const leasehold = await startLeasehold();

console.log("HTTP, 64 connections, one request in flight on each");
const ratios: number[] = [];
for (let round = 0; round < rounds; round++) {
  const bare = await runLoad<Load>("load-http.ts", echo.port, 64, seconds, "echo");
  const mix = await runLoad<Load>("load-http.ts", leasehold.port, 64, seconds, "mix");
  ratios.push(mix.rate / bare.rate);
  console.log(
    `  echo ${format(bare.rate)}/s · lease commands ${format(mix.rate)}/s, p50 ${mix.p50.toFixed(2)} ms, p99 ${mix.p99.toFixed(2)} ms · ratio ${(mix.rate / bare.rate).toFixed(2)}`,
  );
}
console.log(`  median ratio ${median(ratios).toFixed(2)} (bar 0.4, aim 0.5)`);

console.log("HTTP, one lone client");
const lones: number[] = [];
for (let round = 0; round < rounds; round++) {
  const fsync = measureFsync();
  const bare = await runLoad<Load>("load-http.ts", echo.port, 1, seconds, "echo");
  const lone = await runLoad<Load>("load-http.ts", leasehold.port, 1, seconds, "mix");
  lones.push(lone.p50 / (fsync + bare.p50));
  console.log(
    `  fsync p50 ${fsync.toFixed(3)} ms · echo p50 ${bare.p50.toFixed(3)} ms · command p50 ${lone.p50.toFixed(3)} ms · ${(lone.p50 / (fsync + bare.p50)).toFixed(2)} × their sum`,
  );
}
console.log(`  median ${median(lones).toFixed(2)} × (bar 3)`);

console.log("Stream, 16 connections, frames of 64 commands, two in flight on each");
const rates: number[] = [];
for (let round = 0; round < rounds; round++) {
  const stream = await runLoad<Load>("load-stream.ts", leasehold.port, 16, seconds, 64, 2);
  rates.push(stream.rate);
  console.log(
    `  ${format(stream.rate)} durable commands/s, a frame p50 ${stream.p50.toFixed(1)} ms, p99 ${stream.p99.toFixed(1)} ms`,
  );
}
console.log(`  median ${format(median(rates))}/s (bar 60,000, aim 100,000)`);

await leasehold.stop();
await echo.stop();
removeFolder(leasehold.dataFolder);
