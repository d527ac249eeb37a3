/** One stream connection with many calls in flight, for the soak. */
import { once } from "node:events";
import { WebSocket } from "ws";

interface Reply {
  readonly id: number;
  readonly status: number;
  readonly body: unknown;
}

interface Waiting {
  readonly resolve: (body: unknown) => void;
  readonly reject: (fault: Error) => void;
}

export class SoakStream {
  private readonly socket: WebSocket;
  private readonly waiting = new Map<number, Waiting>();
  private next = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      const frame = JSON.parse(String(data)) as Reply | readonly Reply[];
      for (const reply of Array.isArray(frame) ? (frame as readonly Reply[]) : [frame as Reply]) this.take(reply);
    });
  }

  static async open(port: number): Promise<SoakStream> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, { perMessageDeflate: false });
    await once(socket, "open");
    return new SoakStream(socket);
  }

  call<T>(op: string, input: object): Promise<T> {
    const id = this.next++;
    this.socket.send(JSON.stringify({ id, op, input }));
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve: (body) => resolve(body as T), reject });
    });
  }

  close(): void {
    this.socket.close();
  }

  private take({ id, status, body }: Reply): void {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (status < 300) waiting?.resolve(body);
    else waiting?.reject(new Error(`${status} ${JSON.stringify(body).slice(0, 300)}`));
  }
}
