/**
 * One tenant that does all of it at once, as a process of its own. It ends when its input does, and prints what each
 * attack was answered as one line of JSON.
 *
 *   node torture/tenant-attacks.ts PORT KEY PAUSE_MS [ATTACK,ATTACK]
 */
import { randomBytes } from "node:crypto";
import { setPriority } from "node:os";
import { WebSocket } from "ws";
import { Sender, sleep, type Tally, type Target } from "./tenant-requests.ts";
import { dribble, readNothing, subscribe } from "./tenant-sockets.ts";

/** Of each attack; a loop sends, waits for the answer, and pauses for a moment, whatever the answer was. */
const loops = 2;
const niceness = 10;

type Step = (sender: Sender, count: number, loop: number) => Promise<void>;

const kibibytes = (count: number): string => "x".repeat(count * 1_024);
const task = { task_type: "bulk", principal_ai: "hostile" };
const body = kibibytes(99);
const inputs = { text: kibibytes(63) };
const digest = { checkpoint_id: "c", resume_point: "r", context: { text: kibibytes(250) } };

/** Each is another one by its first bytes. */
const artifact = randomBytes(2 ** 20);

const steps: Readonly<Record<string, Step>> = {
  payloads: async (sender) => {
    await sender.send("POST", "/v1/tasks", { ...task, task_body: body, inputs });
  },
  "batches of tasks": async (sender) => {
    await sender.send("POST", "/v1/tasks/batch", { tasks: new Array(100).fill(task) });
  },
  digests: async (sender, count, loop) => {
    const agent_id = `digest.${loop}.${count}`;
    if ((await sender.send("POST", "/v1/agents", { agent_id })) === null && count > 100) return;
    await sender.send("PUT", `/v1/agents/${agent_id}/digest`, digest);
  },
  "progress receipts": async (sender, _count, loop) => {
    const offer = await sender.send("POST", "/lease", { worker_id: `progress.${loop}` });
    const lease_id = offer?.lease_id;
    if (lease_id === undefined) return;
    await sender.send("POST", "/v1/receipts", { phase: "accepted", lease_id });
    for (let sent = 0; sent < 20 && !sender.target.isOver(); sent++) {
      const receipt = { phase: "progress", lease_id, body: { text: body }, metadata: { text: kibibytes(15) } };
      await sender.send("POST", "/v1/receipts", receipt);
      await sender.send("POST", `/lease/${lease_id}/heartbeat`, { progress: { text: kibibytes(15) } });
    }
  },
  "broad patterns": async (sender, count, loop) => {
    const agent_id = `pattern.${loop}.${count % 50}`;
    if (count < 50) await sender.send("POST", "/v1/agents", { agent_id });
    const resource = count % 3 === 0 ? "FILE:/**" : `FILE:/${"a/".repeat(count % 30)}${count % 400}/**`;
    const intents = [{ predicate: count % 3 === 0 ? "CONSUMES" : "MUTATES", resource }];
    await sender.send("POST", "/v1/acquire", { agent_id, intents, wait_timeout_ms: 60_000 });
    await sender.send("GET", `/v1/leases?limit=1000&resource=${encodeURIComponent("FILE:/**")}`);
  },
  "leases, 256 at a time": async (sender, count, loop) => {
    const agent_id = `many.${loop}`;
    if (count === 0) await sender.send("POST", "/v1/agents", { agent_id });
    const intents = Array.from({ length: 256 }, (_, at) => ({
      predicate: "CONSUMES",
      resource: `DB:/${loop}/${count}/${at}/${kibibytes(0.5)}`,
    }));
    await sender.send("POST", "/v1/acquire", { agent_id, intents, ttl_ms: 300_000 });
  },
  "held polls": async (sender, count, loop) => {
    // Not waited for: as many as are let in are held at once.
    const poll = { worker_id: `held.${loop}.${count % 500}`, accept_types: ["nothing"], hold_ms: 55_000 };
    void sender.send("POST", "/lease", poll);
    await sleep(20);
  },
  artifacts: async (sender, count, loop) => {
    artifact.write(`${loop} ${count} `);
    await sender.send("PUT", "/v1/artifacts", artifact);
  },
  "wrong keys": async (sender) => {
    const stranger = new Sender({ ...sender.target, key: "lhk_wrong" });
    await stranger.send("GET", "/v1/tasks");
    sender.tally.sent++;
    for (const code of Object.keys(stranger.tally.refused)) sender.refuse(code);
    stranger.close();
  },
};

/** Frames of nearly a megabyte, each with thousands of commands; the next is sent when the last was answered. */
async function sendFrames(sender: Sender): Promise<void> {
  const { port, key, isOver, pauseMs } = sender.target;
  while (!isOver()) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, {
      perMessageDeflate: false,
      headers: { authorization: `Bearer ${key}` },
    });
    socket.on("error", () => undefined);
    const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    const commands = Array.from({ length: 1_000 }, (_, id) => ({
      id,
      op: "get_agent",
      input: { agent_id: `${id}.${"y".repeat(120)}` },
    }));
    const frame = JSON.stringify(commands);
    let left = 0;
    const next = (): void => {
      if (isOver()) return socket.terminate();
      left = commands.length;
      sender.tally.sent += left;
      socket.send(frame);
    };
    socket.on("open", next);
    socket.on("message", (data) => {
      for (const { status, body: said } of [JSON.parse(String(data)) as Reply | Reply[]].flat()) {
        left--;
        // An agent that is not there was looked for.
        if (status < 300 || said.error === "agent_unknown") sender.accept(frame.length / commands.length);
        else sender.refuse(said.error ?? "untyped");
      }
      if (left <= 0) setTimeout(next, pauseMs);
    });
    await Promise.race([ended, untilOver(isOver)]);
    socket.terminate();
    await sleep(pauseMs);
  }
}

interface Reply {
  readonly status: number;
  readonly body: { readonly error?: string };
}

async function untilOver(isOver: () => boolean): Promise<void> {
  while (!isOver()) await sleep(50);
}

/** Those with sockets of their own. */
const others: Readonly<Record<string, (sender: Sender) => Promise<void>>> = {
  "frames of a megabyte": sendFrames,
  subscriptions: subscribe,
  "unread sockets": readNothing,
  "slow requests": dribble,
};

async function attack(target: Target, only: readonly string[]): Promise<Readonly<Record<string, Tally>>> {
  const senders: Record<string, Sender> = {};
  const all: Promise<unknown>[] = [];
  const senderFor = (name: string): Sender => {
    const sender = new Sender(target);
    senders[name] = sender;
    return sender;
  };
  const isChosen = (name: string): boolean => only.length === 0 || only.includes(name);
  for (const [name, step] of Object.entries(steps)) {
    if (!isChosen(name)) continue;
    const sender = senderFor(name);
    for (let loop = 0; loop < loops; loop++) all.push(repeat(step, sender, loop));
  }
  for (const [name, run] of Object.entries(others)) if (isChosen(name)) all.push(run(senderFor(name)));
  await Promise.all(all);
  for (const sender of Object.values(senders)) sender.close();
  return Object.fromEntries(Object.entries(senders).map(([name, { tally }]) => [name, tally]));
}

async function repeat(step: Step, sender: Sender, loop: number): Promise<void> {
  for (let count = 0; !sender.target.isOver(); count++) await step(sender, count, loop);
}

const [port = "", key = "", pauseMs = "", names = ""] = process.argv.slice(2);
let isOver = false;
process.stdin.on("end", () => {
  isOver = true;
});
process.stdin.resume();
setPriority(niceness);
const target: Target = { port: Number(port), key, isOver: () => isOver, pauseMs: Number(pauseMs) };
const tallies = await attack(target, names.split(",").filter(Boolean));
process.stdout.write(JSON.stringify(tallies), () => process.exit(0));
