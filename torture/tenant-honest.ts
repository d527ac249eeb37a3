/**
 * The work of a tenant that behaves, at a steady rate: leases over HTTP and over the stream, and tasks. Each call is timed,
 * and each must be served.
 */
import { percentile } from "../bench/children.ts";
import { type Connection, connectHttp, connectStream } from "./connections.ts";
import type { Answer, Input, Op } from "./wire.ts";

export const honestKinds = ["leases over HTTP", "leases over the stream", "tasks over the stream"] as const;
export type HonestKind = (typeof honestKinds)[number];

export interface Timing {
  readonly calls: number;
  readonly p50: number;
  readonly p99: number;
}

export interface HonestResult {
  readonly all: Timing;
  readonly byKind: Readonly<Record<HonestKind, Timing>>;
  /** Calls that were not served, with what came instead; there should be none. */
  readonly failures: readonly string[];
}

export interface HonestOptions {
  readonly port: number;
  readonly key: string;
  readonly seconds: number;
}

const lanesPerKind = 3;
/** Between two rounds of a lane: the machine is never busy with honest work alone. */
const pauseMs = 10;
/** At the start, so that what is compared is compiled code. Not counted. */
const warmUpMs = 1_000;
/** Failures that are kept; one is one too many. */
const failuresMax = 20;

export async function workHonestly({ port, key, seconds }: HonestOptions): Promise<HonestResult> {
  const latencies: Record<HonestKind, number[]> = {
    "leases over HTTP": [],
    "leases over the stream": [],
    "tasks over the stream": [],
  };
  const failures: string[] = [];
  const begin = performance.now() + warmUpMs;
  const end = begin + seconds * 1_000;

  const timed = async (kind: HonestKind, connection: Connection, op: Op, input: Input): Promise<Answer> => {
    const sentAt = performance.now();
    const answer = await connection.call(op, input);
    if (sentAt >= begin) latencies[kind].push(performance.now() - sentAt);
    if (answer.status >= 300) throw new Error(`${op}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`);
    return answer;
  };
  const lane = async (kind: HonestKind, name: string, connection: Connection): Promise<void> => {
    const call = (op: Op, input: Input): Promise<Answer> => timed(kind, connection, op, input);
    const round = kind === "tasks over the stream" ? doTask : holdLease;
    try {
      await connection.call("register_agent", { agent_id: name });
      for (let count = 0; performance.now() < end; count++) {
        await round(call, name, count).catch((error: unknown) => {
          if (failures.length < failuresMax) failures.push(error instanceof Error ? error.message : String(error));
        });
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    } finally {
      connection.close();
    }
  };

  await Promise.all(
    honestKinds.flatMap((kind, at) =>
      Array.from({ length: lanesPerKind }, async (_, index) => {
        const connection = kind === "leases over HTTP" ? connectHttp(port, key) : await connectStream(port, key);
        await lane(kind, `honest.${at}.${index}`, connection);
      }),
    ),
  );
  return {
    all: timingOf(honestKinds.flatMap((kind) => latencies[kind])),
    byKind: {
      "leases over HTTP": timingOf(latencies["leases over HTTP"]),
      "leases over the stream": timingOf(latencies["leases over the stream"]),
      "tasks over the stream": timingOf(latencies["tasks over the stream"]),
    },
    failures,
  };
}

type Call = (op: Op, input: Input) => Promise<Answer>;

async function holdLease(call: Call, name: string, count: number): Promise<void> {
  const intents = [{ predicate: "MUTATES", resource: `FILE:/src/${name}/${count % 100}.ts` }];
  const { body } = await call("acquire", { agent_id: name, intents, ttl_ms: 30_000 });
  const lease_id = body.leases?.[0]?.id ?? "";
  await call("heartbeat", { lease_id });
  await call("release_lease", { lease_id });
}

async function doTask(call: Call, name: string): Promise<void> {
  await call("create_task", { task_type: "build", principal_ai: "planner", task_summary: "parse a file" });
  const { body } = await call("poll_tasks", { worker_id: name });
  const { lease_id } = body;
  // Another lane was faster.
  if (lease_id === undefined) return;
  await call("submit_receipt", { phase: "accepted", lease_id });
  await call("submit_receipt", { phase: "complete", status: "success", lease_id });
}

function timingOf(latencies: readonly number[]): Timing {
  const sorted = latencies.toSorted((a, b) => a - b);
  return { calls: sorted.length, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
}
