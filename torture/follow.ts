/** Follows the server's events (SSE) across restarts, as a browser does: it reconnects with Last-Event-ID. */
import { type ClientRequest, get } from "node:http";

export interface TortureEvent {
  readonly type: string;
  readonly at: string;
  readonly reason?: string;
  readonly lease?: {
    readonly id: string;
    readonly resource: string;
    readonly predicate: string;
    readonly agent_id: string;
    readonly state: string;
    readonly fence: number;
    readonly acquired_at: string;
    readonly expires_at: string;
  };
  readonly agent?: { readonly agent_id: string };
}

export interface Follower {
  readonly connects: number;
  /** The refusal, if the server refused: following has failed then. */
  readonly refusal: string | null;
  stop(): void;
}

const comeBackMs = 15;

/** From the first event on. Reconnects to a server that is down, not to one that refuses. */
export function followEvents(
  port: number,
  query: string,
  onEvent: (id: number, event: TortureEvent) => void,
): Follower {
  let lastId = "";
  let request: ClientRequest | null = null;
  let isOver = false;
  let connects = 0;
  let refusal: string | null = null;

  const connect = (): void => {
    if (isOver) return;
    const headers = lastId === "" ? {} : { "Last-Event-ID": lastId };
    request = get({ host: "127.0.0.1", port, path: `/v1/events?since=0${query}`, headers }, (response) => {
      response.setEncoding("utf8");
      // A server that starts or has lost its store answers 503; retry.
      if (response.statusCode !== 200 && response.statusCode !== 503) {
        response.on("data", (text: string) => {
          refusal = `${refusal ?? response.statusCode} ${text}`;
        });
        return;
      }
      connects++;
      let received = "";
      response.on("data", (text: string) => {
        received += text;
        const frames = received.split("\n\n");
        // An event without its final empty line is incomplete and comes again.
        received = frames.pop() ?? "";
        for (const frame of frames) take(frame);
      });
    });
    request.on("error", () => undefined);
    request.on("close", () => setTimeout(connect, comeBackMs));
  };

  const take = (frame: string): void => {
    let id: string | null = null;
    let data: string | null = null;
    for (const line of frame.split("\n")) {
      if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (id !== null) lastId = id;
    if (data !== null) onEvent(Number(id), JSON.parse(data) as TortureEvent);
  };

  connect();
  return {
    get connects() {
      return connects;
    },
    get refusal() {
      return refusal;
    },
    stop() {
      isOver = true;
      request?.destroy();
    },
  };
}
