/**
 * The files of the page, as scripts/page.mjs has built them: read and compressed when they are first asked for, and again
 * after another build. Nothing outside the folder can be named: a path is looked up among the files that were read.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { hashSecret } from "../auth/credentials.ts";

export interface PageFile {
  readonly type: string;
  readonly etag: string;
  /** Its name changes with its content, so that it can be kept for ever. */
  readonly isImmutable: boolean;
  readonly plain: Buffer;
  readonly gzip: Buffer;
  readonly brotli: Buffer;
}

/** In a checkout and in the package, seen from this file. */
const builtFolder = fileURLToPath(new URL("../../../dashboard/dist", import.meta.url));
const stampName = "built-from";
const failureName = "build-failed.txt";
const brotliQuality = 9;

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export class PageFiles {
  private readonly folder: string;
  private files: ReadonlyMap<string, PageFile> = new Map();
  private builtAt = -1;

  constructor(folder = builtFolder) {
    this.folder = folder;
  }

  /** By its path below the server's root: "index.html", "assets/index-x1.js". */
  find(path: string): PageFile | null {
    this.refresh();
    return this.files.get(path) ?? null;
  }

  /** Why there is no page. */
  whyMissing(): string {
    try {
      return readFileSync(join(this.folder, failureName), "utf8");
    } catch {
      return "It has not been built: run `npm run build` in the checkout, or `npm start`, which builds it too.";
    }
  }

  private refresh(): void {
    const builtAt = statSync(join(this.folder, stampName), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (builtAt === this.builtAt) return;
    this.builtAt = builtAt;
    this.files = builtAt === 0 ? new Map() : readAll(this.folder);
  }
}

function readAll(folder: string): ReadonlyMap<string, PageFile> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => name.replaceAll("\\", "/"));
  return new Map(
    names.flatMap((name) => {
      const type = types[/\.\w+$/.exec(name)?.[0] ?? ""];
      return type === undefined ? [] : [[name, readOne(join(folder, name), name, type)] as const];
    }),
  );
}

function readOne(path: string, name: string, type: string): PageFile {
  const plain = readFileSync(path);
  return {
    type,
    etag: `"${hashSecret(plain.toString("latin1")).slice(0, 22)}"`,
    isImmutable: name.startsWith("assets/"),
    plain,
    gzip: gzipSync(plain, { level: 9 }),
    brotli: brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } }),
  };
}
