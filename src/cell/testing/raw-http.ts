/** Requests as bytes, for what no well-behaved client would send. */
import { connect, type Socket } from "node:net";

/** All that came back until the other side closed, or `isEnough` says so; the socket is left as it is. */
export async function exchange(
  url: string,
  text: string,
  isEnough: (answer: string) => boolean = () => false,
): Promise<{ readonly answer: string; readonly socket: Socket }> {
  const { port } = new URL(url);
  // Half open, so that a test sees who closes what.
  const socket = connect({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  let answer = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    answer += chunk;
  });
  socket.write(text, "latin1");
  await new Promise<void>((resolve) => {
    const look = (): void => {
      if (isEnough(answer)) resolve();
    };
    socket.on("data", look);
    socket.on("end", resolve);
    socket.on("close", resolve);
  });
  return { answer, socket };
}

/** The status of a request that asks for its connection to be closed. */
export async function statusOf(url: string, text: string): Promise<number> {
  const { answer, socket } = await exchange(url, text);
  socket.destroy();
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
}
