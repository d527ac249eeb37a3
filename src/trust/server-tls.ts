/**
 * The certificate that a listener shows, and the authority whose clients it knows. The files are read again when they
 * change: connections that are open stay, new ones get the new certificate. Files that do not fit together, because a
 * tool is still writing them, leave the old ones in use.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { TlsOptions } from "node:tls";
import { TrustProblem } from "./loopback.ts";

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Of clients; null: none is asked for a certificate. */
  readonly ca: string | null;
}

export interface TlsLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** A listener that can be given another certificate while it listens. */
interface Reloadable {
  setSecureContext(options: TlsOptions): void;
}

const reloadEveryMs = 2_000;
/** A silent client holds a connection no longer than this. */
const handshakeTimeoutMs = 10_000;
const dayMs = 86_400_000;
const soonMs = 14 * dayMs;

/** What a listener is made with, beside its certificate. TLS 1.3 is preferred by every client that has it. */
function listenerOptions({ ca }: TlsFiles): TlsOptions {
  return {
    minVersion: "TLSv1.2",
    handshakeTimeout: handshakeTimeoutMs,
    // Who shows none is let in, and told apart by the listener: only cells must have one.
    ...(ca !== null && { requestCert: true, rejectUnauthorized: false }),
  };
}

/** Throws a TrustProblem of one line where the files cannot be used. */
export function loadTls({ cert, key, ca }: TlsFiles, now: number): TlsOptions & { readonly endsAt: number } {
  const certText = readPem(cert, "certificate");
  const keyText = readPem(key, "key");
  const own = parseCertificate(cert, certText);
  let isPair: boolean;
  try {
    isPair = own.checkPrivateKey(createPrivateKey(keyText));
  } catch {
    throw new TrustProblem(`the TLS key in ${key} is not a private key in PEM, or needs a passphrase`);
  }
  if (!isPair) throw new TrustProblem(`the TLS key in ${key} does not belong to the certificate in ${cert}`);
  const [startsAt, endsAt] = [Date.parse(own.validFrom), Date.parse(own.validTo)];
  if (endsAt <= now) throw new TrustProblem(`the TLS certificate in ${cert} has expired on ${dayOf(endsAt)}; renew it`);
  if (startsAt > now) {
    throw new TrustProblem(
      `the TLS certificate in ${cert} is not valid before ${dayOf(startsAt)}; is the clock right?`,
    );
  }
  const caText = ca === null ? null : readPem(ca, "client CA");
  if (ca !== null && caText !== null) parseCertificate(ca, caText);
  return { minVersion: "TLSv1.2", cert: certText, key: keyText, ...(caText !== null && { ca: caText }), endsAt };
}

export class ReloadingTls {
  private readonly files: TlsFiles;
  private readonly log: TlsLog;
  private stamp: string;
  private endsAt: number;
  private hasWarned = false;
  private timer: NodeJS.Timeout | null = null;
  private readonly listeners = new Set<Reloadable>();
  private loaded: TlsOptions;

  constructor(files: TlsFiles, log: TlsLog) {
    this.files = files;
    this.log = log;
    // Before the files are read: a change in between is then seen.
    this.stamp = stampOf(files);
    const { endsAt, ...loaded } = loadTls(files, Date.now());
    this.loaded = loaded;
    this.endsAt = endsAt;
  }

  /** For a listener's construction. */
  get options(): TlsOptions {
    return { ...listenerOptions(this.files), ...this.loaded };
  }

  /** Polled and not watched: renames, links that are swapped and network disks all show in a stat. */
  watch(listener: Reloadable, everyMs: number = reloadEveryMs): void {
    this.warnOfEnd();
    this.listeners.add(listener);
    this.timer ??= setInterval(() => this.check(), everyMs).unref();
  }

  unwatch(listener: Reloadable): void {
    this.listeners.delete(listener);
    if (this.listeners.size > 0 || this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
  }

  private check(): void {
    this.warnOfEnd();
    const stamp = stampOf(this.files);
    if (stamp === this.stamp) return;
    this.stamp = stamp;
    try {
      const { endsAt, ...loaded } = loadTls(this.files, Date.now());
      for (const listener of this.listeners) listener.setSecureContext(loaded);
      this.loaded = loaded;
      this.endsAt = endsAt;
      this.hasWarned = false;
      this.log.info({ until: new Date(endsAt).toISOString() }, "the TLS certificate was reloaded");
      this.warnOfEnd();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.log.error({ why }, "the changed TLS files cannot be used; the certificate before stays in use");
    }
  }

  private warnOfEnd(): void {
    if (this.hasWarned || this.endsAt - Date.now() > soonMs) return;
    this.hasWarned = true;
    this.log.warn({ until: new Date(this.endsAt).toISOString() }, "the TLS certificate ends soon; renew it");
  }
}

function readPem(file: string, what: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new TrustProblem(`the TLS ${what} ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function parseCertificate(file: string, text: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw new TrustProblem(`${file} does not hold a certificate in PEM`);
  }
}

function stampOf({ cert, key, ca }: TlsFiles): string {
  return [cert, key, ...(ca === null ? [] : [ca])].map(stampOfFile).join(" ");
}

function stampOfFile(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? "none" : `${found.ino}.${found.size}.${found.mtimeNs}.${found.ctimeNs}`;
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
