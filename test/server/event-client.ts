/** Reads server-sent events as a browser does: by lines, remembering the last id, and nothing else. */
import { type IncomingMessage, request } from "node:http";
import type { WireLease } from "./wire-types.ts";

export interface SeenEvent {
  readonly id: number;
  readonly type: string;
  readonly data: {
    readonly type: string;
    readonly lease?: WireLease;
    readonly agent?: { readonly agent_id: string };
  };
}

export interface Following {
  readonly status: number;
  /** Unless 200: the whole body. */
  readonly body: string;
  readonly events: readonly SeenEvent[];
  readonly comments: number;
  lastId(): string;
  /** Resolves when the server has ended the response. */
  readonly ended: Promise<void>;
  readonly response: IncomingMessage;
  stop(): void;
}

export interface FollowOptions {
  readonly query?: string;
  readonly lastEventId?: string;
  readonly key?: string;
  readonly tenant?: string;
}

export function follow(url: string, { query = "", lastEventId, key, tenant }: FollowOptions = {}): Promise<Following> {
  const headers = {
    accept: "text/event-stream",
    ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(tenant !== undefined && { "leasehold-tenant": tenant }),
  };
  return new Promise((resolve, reject) => {
    const asked = request(`${url}/v1/events${query}`, { headers, agent: false }, (response) => {
      const events: SeenEvent[] = [];
      let lastId = lastEventId ?? "";
      let comments = 0;
      let buffered = "";
      const ended = new Promise<void>((done) => response.once("close", done));
      const following = {
        status: response.statusCode ?? 0,
        body: "",
        events,
        get comments() {
          return comments;
        },
        lastId: () => lastId,
        ended,
        response,
        stop: () => void response.destroy(),
      };
      response.setEncoding("utf8");
      response.on("error", () => undefined);
      response.on("data", (chunk: string) => {
        if (response.statusCode !== 200) {
          following.body += chunk;
          return;
        }
        buffered += chunk;
        const blocks = buffered.split("\n\n");
        buffered = blocks.pop() ?? "";
        for (const block of blocks) {
          const fields = block.split("\n").map((line) => /^([^:]*): ?(.*)$/.exec(line));
          if (fields.some((field) => field?.[1] === "")) comments++;
          const id = fields.find((field) => field?.[1] === "id")?.[2];
          if (id !== undefined) lastId = id;
          const data = fields.find((field) => field?.[1] === "data")?.[2];
          if (data === undefined) continue;
          const event = JSON.parse(data) as SeenEvent["data"];
          events.push({ id: Number(lastId), type: event.type, data: event });
        }
      });
      if (response.statusCode === 200) resolve(following);
      else response.once("end", () => resolve(following));
    });
    asked.once("error", reject);
    asked.end();
  });
}
