/** How attacks send, and how their answers are counted: by attack, by code, and in bytes that were accepted. */
import { Agent, request } from "node:http";

export interface Tally {
  sent: number;
  accepted: number;
  acceptedBytes: number;
  /** By error code; `closed` for a connection that ended without an answer, `untyped` for what has no code. */
  readonly refused: Record<string, number>;
}

export interface Target {
  readonly port: number;
  readonly key: string;
  readonly isOver: () => boolean;
  /** After each answer. */
  readonly pauseMs: number;
}

/** Of one attack: its own few sockets, and its own counts. */
export class Sender {
  readonly tally: Tally = { sent: 0, accepted: 0, acceptedBytes: 0, refused: {} };
  readonly target: Target;
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 32 });

  constructor(target: Target) {
    this.target = target;
  }

  /** The body of an accepted answer; null where it was refused. Resolves a moment after it, whatever it was. */
  async send(method: string, path: string, body: object | Buffer | null = null): Promise<ReplyBody | null> {
    const bytes = body === null ? null : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    this.tally.sent++;
    const answer = await this.exchange(method, path, bytes, Buffer.isBuffer(body));
    await sleep(this.target.pauseMs);
    if (answer === null) return this.refuse("closed");
    const parsed = parse(answer.text);
    if (answer.status >= 300) return this.refuse(parsed?.error ?? "untyped");
    this.accept(bytes?.length ?? 0);
    return parsed ?? {};
  }

  accept(bytes: number): void {
    this.tally.accepted++;
    this.tally.acceptedBytes += bytes;
  }

  refuse(code: string): null {
    this.tally.refused[code] = (this.tally.refused[code] ?? 0) + 1;
    return null;
  }

  close(): void {
    this.agent.destroy();
  }

  private exchange(method: string, path: string, bytes: Buffer | null, isRaw: boolean): Promise<Reply | null> {
    const { port, key } = this.target;
    const headers = {
      authorization: `Bearer ${key}`,
      ...(bytes !== null && {
        "content-type": isRaw ? "application/octet-stream" : "application/json",
        "content-length": bytes.length,
      }),
    };
    return new Promise((resolve) => {
      const sent = request({ host: "127.0.0.1", port, method, path, headers, agent: this.agent }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => {
          text += part;
        });
        response.on("close", () => resolve(response.complete ? { status: response.statusCode ?? 0, text } : null));
      });
      sent.on("error", () => resolve(null));
      sent.end(bytes ?? undefined);
    });
  }
}

interface Reply {
  readonly status: number;
  readonly text: string;
}

/** What attacks read of an answer. */
export interface ReplyBody {
  readonly error?: string;
  readonly lease_id?: string;
}

export function parse(text: string): ReplyBody | null {
  try {
    return JSON.parse(text) as ReplyBody;
  } catch {
    return null;
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
