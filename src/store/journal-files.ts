/** The journal's files: made at an open, sealed and read by the next one, deleted when all of them is in the tables. */
import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { StoreFault } from "./faults.ts";
import { type Block, blocksIn, decodeBlock, lastNumberIn, markBytes } from "./journal-block.ts";
import { type DataFiles, syncPath } from "./sqlite-files.ts";

/** Written when a file is made; it grows beyond that while it is used. */
const firstBytes = 1024 * 1024;
const namePrefix = "leasehold.journal-";
const journalName = /^leasehold\.journal-([0-9a-f]{16})\.[01]$/;
const owned = 0o600;
const sealed = 0o400;

/** The two files of one opener: another one never writes into them. */
export interface JournalPair {
  readonly paths: readonly [string, string];
  /** In hex: what its blocks are marked with, and part of the files' names. */
  readonly mark: string;
}

export function makeJournals({ folder }: DataFiles): JournalPair {
  const mark = randomBytes(markBytes).toString("hex");
  const paths = [join(folder, `${namePrefix}${mark}.0`), join(folder, `${namePrefix}${mark}.1`)] as const;
  const zeros = Buffer.alloc(firstBytes);
  for (const path of paths) {
    const handle = openSync(path, "wx", owned);
    try {
      writeSync(handle, zeros);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  }
  syncPath(folder);
  return { paths, mark };
}

/** All journals of a folder, also those of earlier openers. */
function findJournals({ folder }: DataFiles): readonly FoundJournal[] {
  return readdirSync(folder).flatMap((name) => {
    const mark = journalName.exec(name)?.[1];
    return mark === undefined ? [] : { path: join(folder, name), mark: Buffer.from(mark, "hex") };
  });
}

interface FoundJournal {
  readonly path: string;
  readonly mark: Buffer;
}

/** Nobody acknowledges anything from here on that was written into them: see Journal. */
export function sealJournals(files: DataFiles): void {
  for (const { path } of findJournals(files)) chmodSync(path, sealed);
}

export function removeJournals(files: DataFiles): void {
  for (const { path } of findJournals(files)) rmSync(path, { force: true });
}

/** The number of the last commit in any journal; 0: there is none. */
export function lastCommitIn(files: DataFiles): number {
  return Math.max(0, ...findJournals(files).map(({ path, mark }) => lastNumberIn(readFileSync(path), mark)));
}

/**
 * The blocks after this number, in order. A block that is torn is the last one, and was not acknowledged; one that is
 * damaged and has others after it was, so nothing is opened then.
 */
export function readJournals(files: DataFiles, folded: number): readonly Block[] {
  const blocks: Block[] = [];
  let greatest = folded;
  for (const { path, mark } of findJournals(files)) {
    const bytes = readFileSync(path);
    for (const { number, offset } of blocksIn(bytes, mark))
      if (number > folded) blocks.push(decodeBlock(bytes, offset));
    greatest = Math.max(greatest, lastNumberIn(bytes, mark));
  }
  blocks.sort((a, b) => a.number - b.number);
  const last = folded + blocks.length;
  if (greatest > last || blocks.some(({ number }, index) => number !== folded + 1 + index)) {
    throw new StoreFault(`the journal in ${files.folder} is damaged after commit ${last}: restore a backup`);
  }
  return blocks;
}
