/**
 * `files`: a folder, or a range of bytes of one file or block device, by a small HTTP interface. What is under way when
 * the lease ends is not put in place.
 *
 *   GET /path         the bytes (Range: bytes=a-b), or what a folder holds, as JSON
 *   PUT /path         a whole file, in one step; with ?offset=n bytes within a file; with ?type=folder a folder
 *   DELETE /path      a file, or an empty folder
 *
 * With a range, the path is / and offsets count from its beginning.
 */

import { resolve } from "node:path";
import type { Fields } from "../fields.ts";
import { readListening } from "../listening.ts";
import { SafeFolder } from "../safe-folder.ts";
import { AreaDriver, type AreaOptions } from "./area-driver.ts";
import { FolderArea, RangeArea } from "./file-areas.ts";
import { openStore } from "./file-store.ts";
import type { Span } from "./file-transfer.ts";

interface FilesOptions extends AreaOptions {
  readonly area:
    | { readonly type: "folder"; readonly folder: string }
    | { readonly type: "range"; readonly file: string; readonly span: Span };
  /** Of a file in a folder. */
  readonly fileBytesMax: number;
}

const defaultFileBytesMax = 2 ** 30;

export function readFilesOptions(fields: Fields, base: string): FilesOptions {
  const folder = fields.text("folder", null);
  const file = fields.text("file", null);
  const offset = fields.integer("offset", [0, Number.MAX_SAFE_INTEGER], 0);
  const length = fields.integer("length", [1, Number.MAX_SAFE_INTEGER], null);
  if ((folder === null) === (file === null)) fields.fault("folder", "or file: give one of the two");
  if (file !== null && length === null) fields.fault("length", "is missing; say how many bytes of the file are leased");
  if (length !== null && !Number.isSafeInteger(offset + length))
    fields.fault("length", "reaches beyond what a file can hold");
  const area =
    folder !== null
      ? ({ type: "folder", folder: resolve(base, folder) } as const)
      : ({ type: "range", file: resolve(base, file ?? ""), span: { from: offset, length: length ?? 0 } } as const);
  const fileBytesMax = fields.integer("file_bytes_max", [0, Number.MAX_SAFE_INTEGER], defaultFileBytesMax);
  return { area, readOnly: fields.flag("read_only"), fileBytesMax, listening: readListening(fields) };
}

export class FilesDriver extends AreaDriver<FilesOptions> {
  protected readonly area =
    this.options.area.type === "folder"
      ? new FolderArea(this.options.area.folder, this.options.fileBytesMax)
      : rangeOf(this.options.area.file, this.options.area.span);

  protected async check(): Promise<void> {
    const { area, readOnly } = this.options;
    if (area.type === "folder") return await new SafeFolder(area.folder).check();
    await using store = await openStore(area.file, readOnly ? "read" : "write");
    const end = area.span.from + area.span.length;
    if (!store.mayGrow && (await store.sizeUpTo(end)) < end)
      throw new Error(`the device ends before byte ${end}, so this range cannot be leased`);
  }
}

function rangeOf(file: string, span: Span): RangeArea {
  return new RangeArea((mode) => openStore(file, mode), span);
}
