/** Fetches a backup from a running server (S6). The file appears whole or not at all. */
import { open, rename, rm } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { backup } from "../../protocol/operating/backup.ts";
import type { Config } from "../config/config.ts";
import { CommandFailed } from "./failure.ts";

interface Target {
  readonly url: string | undefined;
  readonly key: string | undefined;
}

export async function fetchBackup(file: string, { host, port }: Config, { url, key }: Target): Promise<string> {
  const base = url ?? `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const response = await ask(new URL(backup.path, base), key);
  if (response.statusCode !== 200) throw new CommandFailed(`the server refused: ${await detailOf(response)}`);
  const partial = `${file}.part`;
  const handle = await open(partial, "w", 0o600);
  try {
    await handle.writeFile(response);
    const { size } = await handle.stat();
    if (size !== Number(response.headers["content-length"]))
      throw new CommandFailed("the backup was cut short; try again");
    await handle.sync();
    await handle.close();
    await rename(partial, file);
    return `${file} has ${size} bytes.\n`;
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(partial, { force: true });
    throw error;
  }
}

/** By hand, because a fetch gives up after five minutes of silence, and a large copy may take longer to make. */
function ask(url: URL, key: string | undefined): Promise<IncomingMessage> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const request = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: backup.method, headers }, resolve);
    asked.on("error", (cause) =>
      reject(new CommandFailed(`no server answers at ${url.origin}: ${cause.message}`, { cause })),
    );
    asked.end();
  });
}

async function detailOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  try {
    const { detail } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly detail?: string };
    return detail ?? `status ${response.statusCode}`;
  } catch {
    return `status ${response.statusCode}`;
  }
}
