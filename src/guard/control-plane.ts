/**
 * Calls to the server, with nothing but Node's own client: a hook is a process that lives for a few dozen
 * milliseconds, and loading anything more would take longer than the calls.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import { type FoundOwner, findProvedOwner, proofHeader } from "../trust/owner-token.ts";
import { isRecord } from "./payload.ts";
import type { Settings } from "./settings.ts";

export interface Answer {
  readonly status: number;
  /** Decoded JSON; what is asked of it is checked where it is used. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** No answer came: nothing listens there, or it took too long, or what answered is not Leasehold. */
export class Unreachable extends Error {
  override name = "Unreachable";
}

export type Method = "GET" | "POST" | "DELETE";

export interface ControlPlane {
  readonly url: string;
  call(method: Method, path: string, body?: object, more?: CallOptions): Promise<Answer>;
}

export interface CallOptions {
  /** An agent's token, in place of the key. */
  readonly token?: string | null;
  /** How much longer than usual the answer may take. */
  readonly holdMs?: number;
}

const answerMs = 4_000;
const answerBytesMax = 16 * 2 ** 20;

/** Where others can be asked too, one that is silent gets less. */
const answerMsOfSeveral = 2_000;

/** By the first of the servers: how many of them did not answer before the one that did. The helper lives for many hooks. */
const passedOver = new Map<string, number>();

/** The servers of a cluster are tried one after the other; what answered is asked first the next time. */
export function connect(settings: Settings): ControlPlane {
  const { url: name, urls } = settings;
  const limitMs = urls.length === 1 ? answerMs : answerMsOfSeveral;
  const servers = urls.map((url) => connectOne(url, settings, limitMs));
  return {
    url: name,
    async call(method, path, body, more) {
      for (let tries = 1; ; tries++) {
        const at = passedOver.get(name) ?? 0;
        const present = servers[at % servers.length];
        if (present === undefined) throw new Unreachable("no server is named");
        try {
          return await present(method, path, body, more);
        } catch (error) {
          if (!(error instanceof Unreachable)) throw error;
          if ((passedOver.get(name) ?? 0) === at) passedOver.set(name, (at + 1) % servers.length);
          if (tries >= servers.length) throw error;
        }
      }
    },
  };
}

function connectOne(
  url: string,
  { key, tenant, tls: files, environment }: Settings,
  limitMs: number,
): ControlPlane["call"] {
  const isSecure = url.startsWith("https:");
  const tls = isSecure ? files : null;
  const { request } = isSecure ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http");
  let owner: Promise<FoundOwner | null> | null = null;
  /** S5: the owner's token, once what listens there has proved that it knows it too. */
  const askForProof = (address: string, headers: Readonly<Record<string, string>>): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const asked = request(address, { headers, ...tls, signal: AbortSignal.timeout(limitMs) });
      asked.on("response", (response) => resolve(response.resume().headers[proofHeader]));
      asked.on("error", (error) => reject(new Unreachable(error.message)));
      asked.end();
    });
  return async (method, path, body, { token = null, holdMs = 0 } = {}) => {
    owner ??= key === null ? findProvedOwner(url, environment, askForProof) : Promise.resolve(null);
    const proved = await owner.catch((error: unknown) => {
      // It may be back when it is asked again.
      owner = null;
      throw error;
    });
    const secret = token ?? key ?? proved?.token ?? null;
    const address = proved?.url ?? url;
    const text = body === undefined ? null : JSON.stringify(body);
    const headers = {
      ...(text !== null && { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) }),
      ...(secret !== null && { authorization: `Bearer ${secret}` }),
      ...(tenant !== null && { "leasehold-tenant": tenant }),
    };
    const signal = AbortSignal.timeout(limitMs + holdMs);
    return await new Promise<Answer>((resolve, reject) => {
      const fail = (error: Error): void => {
        reject(new Unreachable(signal.aborted ? `no answer within ${limitMs + holdMs} ms` : error.message));
      };
      // A connection of its own: one that the helper kept might have ended with a server that was restarted.
      const options = { method, headers, ...tls, signal, agent: false } as const;
      const sent: ClientRequest = request(`${address}${path}`, options, (response) => {
        collect(response).then((answer) => resolve(answer), fail);
      });
      sent.on("error", fail);
      sent.end(text ?? undefined);
    });
  };
}

async function collect(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > answerBytesMax) throw new Error("the answer does not end");
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  const status = response.statusCode ?? 0;
  let body: unknown;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch {
    // Said below.
  }
  if (!isRecord(body)) throw new Error("what answers there is not Leasehold");
  const { error = "", detail = "" } = body;
  if (status < 500 && status !== 429) return { status, body };
  throw new Error(`it answers ${status} ${String(error)}: ${String(detail).slice(0, 200)}`);
}
