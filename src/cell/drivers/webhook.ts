/**
 * `webhook`: the user's own service binds and tears down. It gets a signed POST, and answers with any 2xx; to
 * `bind` with `{"coordinate": "…"}`, to `probe` with `{"clean": true}`. Redirects are not followed, and private
 * addresses are not called unless the configuration says so.
 */
import { createHmac, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { resolve } from "node:path";
import { AddressGuard, isNetwork, NotPermitted } from "../addresses.ts";
import type { Binding } from "../binding.ts";
import { Driver, NothingBegun, type Operations, type ProbeResult } from "../driver.ts";
import { reasonOf } from "../failure.ts";
import type { Fields } from "../fields.ts";
import { bareHost } from "../listening.ts";
import { readAll } from "../pump.ts";

interface WebhookOptions {
  readonly url: URL;
  /** Read for each call, so that it can be changed without a restart. */
  readonly secretFile: string;
  readonly allowPrivate: boolean;
  readonly allow: readonly string[];
}

const secretBytesMin = 16;
const answerBytesMax = 65_536;
const coordinateLengthMax = 1_024;

export function readWebhookOptions(fields: Fields, folder: string): WebhookOptions {
  const url = fields.address("url", /^https?:\/\/[^\s#]+$/, "give https://host/path");
  const secretFile = resolve(folder, fields.text("secret_file"));
  const allowPrivate = fields.flag("allow_private");
  const allow = fields.list("allow") ?? [];
  const wrong = allow.find((entry) => !isNetwork(entry));
  if (wrong !== undefined) fields.fault("allow", `has ${JSON.stringify(wrong)}; give networks such as 10.1.0.0/16`);
  return { url, secretFile, allowPrivate, allow };
}

export class WebhookDriver extends Driver<WebhookOptions> {
  /** What `bind` sets up is used directly, and nobody here sees how. */
  static readonly operations: Operations = { bind: "opaque" };
  private readonly guard = new AddressGuard(this.options.allowPrivate, this.options.allow);

  override async start(): Promise<void> {
    this.secret();
  }

  override canWeaken(): boolean {
    return false;
  }

  async bind(binding: Binding, signal: AbortSignal): Promise<string> {
    this.requireWriter(binding, "bind");
    const { coordinate = "" } = await this.tell("bind", binding, signal);
    if (typeof coordinate !== "string" || coordinate.length > coordinateLengthMax) {
      throw new Error("the webhook's coordinate is not text, or is too long");
    }
    return coordinate;
  }

  override async teardown(binding: Binding, signal: AbortSignal): Promise<void> {
    await this.tell("teardown", binding, signal);
  }

  async probe(signal: AbortSignal): Promise<ProbeResult> {
    const { clean, detail } = await this.tell("probe", null, signal);
    return { clean: clean === true, detail: typeof detail === "string" ? detail.slice(0, 200) : `clean: ${clean}` };
  }

  async reset(signal: AbortSignal): Promise<void> {
    await this.tell("reset", null, signal);
  }

  private async tell(event: string, binding: Binding | null, signal: AbortSignal): Promise<Record<string, unknown>> {
    const answer = await this.post(JSON.stringify(this.leaseJson(event, binding)), signal);
    const text = await readAll(answer, answerBytesMax, "the webhook's answer is too long");
    const status = answer.statusCode ?? 0;
    if (status < 200 || status > 299) throw new Error(`the webhook answered ${status} to ${event}`);
    if (text.trim() === "") return {};
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
    } catch {
      // Said below.
    }
    throw new Error(`the webhook answered ${event} with something that is not a JSON object`);
  }

  private post(body: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { url } = this.options;
    const host = bareHost(url);
    // A name is looked up by the guard; an address is not looked up at all, and is checked here.
    if (isIP(host) !== 0 && !this.guard.permits(host)) return Promise.reject(new NotPermitted(host));
    const at = Math.floor(Date.now() / 1_000);
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "leasehold-delivery": randomUUID(),
      "leasehold-timestamp": String(at),
      "leasehold-signature": `v1=${createHmac("sha256", this.secret()).update(`${at}.${body}`).digest("hex")}`,
    };
    const ask = url.protocol === "https:" ? requestHttps : requestHttp;
    return new Promise((resolve, reject) => {
      const request = ask(url, { method: "POST", headers, signal, agent: false, lookup: this.guard.lookup }, resolve);
      request.on("error", (error) => reject(signal.aborted ? signal.reason : failureOf(error)));
      request.end(body);
    });
  }

  private secret(): Buffer {
    const secret = Buffer.from(readFileSync(this.options.secretFile, "utf8").trim());
    if (secret.length >= secretBytesMin) return secret;
    throw new Error(`${this.options.secretFile} holds less than ${secretBytesMin} bytes; give a longer secret`);
  }
}

/** Errors that mean that the service was not reached, so nothing was done. */
const unreached = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

function failureOf(error: NodeJS.ErrnoException): Error {
  if (error instanceof NotPermitted) return error;
  const message = `the webhook failed: ${reasonOf(error)}`;
  return unreached.has(error.code ?? "")
    ? new NothingBegun(message, { cause: error })
    : new Error(message, { cause: error });
}
