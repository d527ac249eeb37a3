/** A client of the WebSocket stream that keeps every frame that it was sent. */

import assert from "node:assert/strict";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { WebSocket } from "ws";

export interface Frame {
  readonly id?: number | string | null;
  readonly status?: number;
  readonly body?: {
    readonly error?: string;
    readonly verdict?: string;
    readonly leases?: readonly { readonly id: string; readonly fence: number }[];
    readonly subscribed?: boolean;
    readonly request_id?: string;
  };
  readonly seq?: number;
  readonly event?: { readonly type: string };
}

export async function openStream(t: TestContext, url: string, key?: string) {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`, { headers });
  const frames: Frame[] = [];
  const sizes: number[] = [];
  socket.on("message", (data) => {
    const frame = JSON.parse(String(data)) as Frame | Frame[];
    const many = Array.isArray(frame) ? frame : [frame];
    sizes.push(many.length);
    frames.push(...many);
  });
  t.after(() => socket.terminate());
  await once(socket, "open");
  const until = async (isThere: () => boolean): Promise<void> => {
    while (!isThere()) await new Promise((resolve) => setTimeout(resolve, 2));
  };
  const send = (frame: unknown): void => socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  const answer = async (id: number | string): Promise<Frame> => {
    await until(() => frames.some((frame) => frame.id === id));
    const found = frames.find((frame) => frame.id === id);
    assert.ok(found !== undefined);
    return found;
  };
  return { socket, frames, sizes, send, answer, until };
}
