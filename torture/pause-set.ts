/** The resource of the pause test: a set over HTTP, read and written as a whole, with or without a check of fences. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SharedSet {
  readonly url: string;
  readonly items: readonly string[];
  /** What acknowledged operations added. */
  readonly acknowledged: readonly string[];
  readonly refused: number;
  close(): Promise<void>;
}

interface Write {
  readonly fence: number;
  readonly items: readonly string[];
  readonly added: string;
}

export async function openSet(isFenced: boolean): Promise<SharedSet> {
  let items: readonly string[] = [];
  let highest = 0;
  let refused = 0;
  const acknowledged: string[] = [];
  /** Reads count as well: a read with a higher fence shuts out earlier holders. */
  const mayPass = (fence: number): boolean => {
    if (isFenced && fence < highest) {
      refused++;
      return false;
    }
    highest = Math.max(highest, fence);
    return true;
  };
  const answer = (response: ServerResponse, status: number, body: unknown): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      const fence = Number(new URL(request.url ?? "/", "http://set").searchParams.get("fence"));
      return mayPass(fence) ? answer(response, 200, items) : answer(response, 409, "stale");
    }
    void bodyOf(request).then((text) => {
      const write = JSON.parse(text) as Write;
      if (!mayPass(write.fence)) return answer(response, 409, "stale");
      items = write.items;
      acknowledged.push(write.added);
      answer(response, 200, "stored");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    get items() {
      return items;
    },
    acknowledged,
    get refused() {
      return refused;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
