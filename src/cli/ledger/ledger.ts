/** `ledger verify` and `ledger export` (R6). Both only read, so a server may run on the data meanwhile. */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { defaultTenant } from "../../engine/recovery.ts";
import { ExportCheck, receiptLine } from "../../ledger/export-lines.ts";
import { headJson, type ReadHead, readHead, signHead } from "../../ledger/head.ts";
import { findLedgerKey, keyFileName } from "../../ledger/key-file.ts";
import type { PublicLedgerKey } from "../../ledger/keys.ts";
import { type Verdict, Verifier } from "../../ledger/verify.ts";
import { type LedgerFile, openLedgerFile } from "../../store/ledger-file.ts";
import type { SignedHead, StoredReceipt } from "../../store/store.ts";
import { Failure, messageOf, UsageProblem } from "../problem.ts";
import { writeWhole } from "../whole-file.ts";

export interface VerifyOptions {
  readonly data: string;
  /** An export to check in place of the data. */
  readonly file: string | null;
  /** A file with earlier heads. */
  readonly anchor: string | null;
  /** Only this tenant's ledger. */
  readonly tenant: string | null;
}

export interface Checked {
  readonly isWhole: boolean;
  readonly text: string;
}

export function verifyLedger(options: VerifyOptions): Checked {
  const anchors = options.anchor === null ? [] : readAnchors(options.anchor, options.tenant);
  const progress = createProgress("receipts checked");
  const { file } = options;
  try {
    const verdict = file === null ? verifyData(options, anchors, progress) : verifyFile(file, anchors, progress);
    return describe(verdict, file ?? options.data);
  } finally {
    progress.end();
  }
}

function verifyData({ data, tenant }: VerifyOptions, anchors: readonly ReadHead[], progress: Progress): Verdict {
  const ledger = openLedgerFile(data);
  try {
    const verifier = new Verifier({
      heads: headsFor(ledger, tenant),
      anchors: anchors.map(({ head }) => head),
      keys: [...ledger.keys, ...keysOf(anchors)],
      onProgress: progress.at,
    });
    for (const row of receiptsFor(ledger, tenant)) verifier.takeRow(row);
    return verifier.finish();
  } finally {
    ledger.close();
  }
}

/** As `verifyLedger`, of what a cluster has in its database. */
export async function verifyStoredLedger(
  store: string,
  { anchor, tenant }: Pick<VerifyOptions, "anchor" | "tenant">,
): Promise<Checked> {
  const anchors = anchor === null ? [] : readAnchors(anchor, tenant);
  const { openPostgresLedger } = await import("../../store/postgres-ledger.ts");
  const ledger = await openPostgresLedger(store);
  const progress = createProgress("receipts checked");
  try {
    const verifier = new Verifier({
      heads: headsFor(ledger, tenant),
      anchors: anchors.map(({ head }) => head),
      keys: [...ledger.keys, ...keysOf(anchors)],
      onProgress: progress.at,
    });
    for await (const row of ledger.receipts()) if (tenant === null || row.tenant === tenant) verifier.takeRow(row);
    return describe(verifier.finish(), placeOf(store));
  } finally {
    progress.end();
    await ledger.close();
  }
}

/** Without the password. */
function placeOf(store: string): string {
  const { hostname, port, pathname } = new URL(store);
  return `postgres://${hostname}:${port || 5432}${pathname}`;
}

function verifyFile(file: string, anchors: readonly ReadHead[], progress: Progress): Verdict {
  const verifier = new Verifier({
    anchors: anchors.map(({ head }) => head),
    keys: keysOf(anchors),
    onProgress: progress.at,
  });
  const check = new ExportCheck(verifier);
  for (const line of linesOf(file)) check.take(line);
  check.finish();
  return verifier.finish();
}

function* receiptsFor(ledger: LedgerFile, tenant: string | null): Generator<StoredReceipt> {
  for (const row of ledger.receipts()) if (tenant === null || row.tenant === tenant) yield row;
}

function headsFor(
  { heads }: Pick<LedgerFile, "heads">,
  tenant: string | null,
): ReadonlyMap<string, Iterable<SignedHead>> {
  return tenant === null ? heads : new Map([[tenant, heads.get(tenant) ?? []]]);
}

/** One head, as the server or an export gives it, or a line for each. */
function readAnchors(file: string, tenant: string | null): readonly ReadHead[] {
  const text = reading(file, () => readFileSync(file, "utf8")).trim();
  const whole = readHead(text, tenant ?? defaultTenant);
  const heads = whole === null ? text.split("\n").map((line) => readHead(line, tenant ?? defaultTenant)) : [whole];
  const found = heads.filter((head) => head !== null);
  if (found.length < heads.length) throw new UsageProblem(`${file} does not hold heads of a ledger, as --anchor needs`);
  return found.filter(({ head }) => tenant === null || head.tenant === tenant);
}

function keysOf(anchors: readonly ReadHead[]): PublicLedgerKey[] {
  return anchors.flatMap(({ head, publicKey }) => (publicKey === null ? [] : [{ keyId: head.keyId, publicKey }]));
}

function describe({ receipts, heads, findings, ends, keyIds }: Verdict, where: string): Checked {
  if (findings.length > 0) {
    const lines = findings.map(({ tenant, detail }) => `tenant ${tenant || "unknown"}: ${detail}\n`);
    return { isWhole: false, text: `The ledger in ${where} is broken.\n${lines.join("")}` };
  }
  const counts = `${count(receipts)} receipts, ${count(heads)} signed heads`;
  const keys = keyIds.length === 0 ? "" : `, signed by ${keyIds.join(", ")}`;
  const lines = ends.map(
    ({ tenant, sequence, hash }) => `  ${tenant}: ${count(sequence)} receipts, the last ${hash}\n`,
  );
  return { isWhole: true, text: `The ledger in ${where} is whole: ${counts}${keys}.\n${lines.join("")}` };
}

function count(number: number): string {
  return number.toLocaleString("en");
}

export interface ExportOptions {
  readonly data: string;
  readonly tenant: string | null;
  /** Standard output, if null. */
  readonly out: string | null;
}

/** Returns a line to print; null where the export itself went to standard output. */
export async function exportLedger(options: ExportOptions): Promise<string | null> {
  const { data, out } = options;
  const ledger = openLedgerFile(data);
  const progress = createProgress("receipts exported");
  try {
    const bytes = portions(exportLines(ledger, options, progress));
    if (out === null) {
      await pipeline(Readable.from(bytes, { objectMode: false }), process.stdout, { end: false });
      return null;
    }
    await writeWhole(out, bytes);
    return `${out} holds the ledger up to now; ledger verify --file ${out} checks it.\n`;
  } finally {
    progress.end();
    ledger.close();
  }
}

/** Verified on the way: a broken ledger is not signed at the end. */
function* exportLines(ledger: LedgerFile, { data, tenant }: ExportOptions, progress: Progress): Generator<string> {
  const key = findLedgerKey(data);
  if (key === null) throw new Failure(`the end of an export is signed, and ${data} has no ${keyFileName}`);
  const verifier = new Verifier({ heads: headsFor(ledger, tenant), keys: ledger.keys, onProgress: progress.at });
  for (const row of receiptsFor(ledger, tenant)) {
    verifier.takeRow(row);
    if (verifier.firstFinding !== null) break;
    yield receiptLine(row.body, row.hash);
  }
  const { findings, ends } = verifier.finish();
  const [broken] = findings;
  if (broken !== undefined) {
    throw new Failure(`the ledger is broken, so its export was not signed: tenant ${broken.tenant}: ${broken.detail}`);
  }
  for (const end of ends) yield headJson(signHead({ ...end, at: Date.now() }, key), key.publicKey);
}

const portionLength = 256 * 1024;

/** The text is ASCII, so that one byte is one character. */
function* portions(lines: Iterable<string>): Generator<Buffer> {
  let text = "";
  for (const line of lines) {
    text += `${line}\n`;
    if (text.length < portionLength) continue;
    yield Buffer.from(text, "latin1");
    text = "";
  }
  yield Buffer.from(text, "latin1");
}

const readBytes = 1024 * 1024;
/** No line of an is longer. */
const lineLengthMax = 64 * 1024 * 1024;

/** A file line by line, a byte as a character, so that what is not ASCII is kept and found. */
function* linesOf(file: string): Generator<string> {
  const handle = reading(file, () => openSync(file, "r"));
  try {
    const buffer = Buffer.alloc(readBytes);
    let rest = "";
    for (let length = readSync(handle, buffer); length > 0; length = readSync(handle, buffer)) {
      const lines = (rest + buffer.toString("latin1", 0, length)).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > lineLengthMax) throw new Failure(`${file} is not an export: it has a line of over 64 MiB`);
      yield* lines;
    }
    if (rest !== "") yield rest;
  } finally {
    closeSync(handle);
  }
}

function reading<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new Failure(`${file} cannot be read: ${messageOf(cause)}`, undefined, { cause });
  }
}

const quietMs = 2_000;
const everyMs = 1_000;

type Progress = ReturnType<typeof createProgress>;

/** Progress on standard error, for work that takes longer than two seconds. */
function createProgress(what: string) {
  const began = performance.now();
  const { stderr } = process;
  let next = began + quietMs;
  let isShown = false;
  return {
    at(done: number) {
      const now = performance.now();
      if (now < next) return;
      next = now + everyMs;
      isShown = true;
      const seconds = Math.round((now - began) / 1_000);
      const line = `${done.toLocaleString("en")} ${what} in ${seconds} s`;
      stderr.write(stderr.isTTY ? `\r${line}` : `${line}\n`);
    },
    end() {
      if (isShown && stderr.isTTY) stderr.write("\n");
    },
  };
}
