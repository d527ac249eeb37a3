/**
 * Readers of old events: each reads all of them from the beginning and begins again, until the process is ended. Prints
 * now and then how many they have read together. Started by bench/readers.ts.
 *
 *   node bench/history-readers.ts PORT READERS
 */
const newline = 10;
const [port = 0, readers = 0] = process.argv.slice(2).map(Number);

let events = 0;
setInterval(() => console.log(events), 100);
await Promise.all(Array.from({ length: readers }, readAgainAndAgain));

async function readAgainAndAgain(): Promise<never> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/v1/events?since=0&follow=false`);
    if (response.status !== 200 || response.body === null) throw new Error(`${response.status} for the events`);
    let lastByte = 0;
    for await (const chunk of response.body) {
      // An event ends with an empty line.
      for (const byte of chunk) {
        if (byte === newline && lastByte === newline) events++;
        lastByte = byte;
      }
    }
  }
}
