/**
 * Files below one folder, and none beyond it. Each step down opens one name in a folder that is already open, and
 * follows no link: so nothing that is swapped meanwhile leads out. (Linux reaches an open folder by /proc/self/fd, which
 * is the openat of a platform that has none.)
 */
import { constants, renameSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { hasProc } from "./processes.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;

export interface Entry {
  readonly name: string;
  readonly type: "file" | "folder" | "other";
}

/** A folder that is open, and how to name what is in it. */
interface OpenFolder extends AsyncDisposable {
  readonly at: (name: string) => string;
}

export class SafeFolder {
  private readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** Throws what the file system throws. Segments are plain names. */
  async openFile(segments: readonly string[], mode: "read" | "write"): Promise<FileHandle> {
    return await this.within(segments, async (folder, name) => {
      // Nor does it wait for a writer, if there is a pipe in its place.
      const handle = await open(folder.at(name), (mode === "read" ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK);
      if ((await handle.stat()).isFile()) return handle;
      await handle.close();
      throw Object.assign(new Error("It is not a file."), { code: "ENOTFILE" });
    });
  }

  async isFolder(segments: readonly string[]): Promise<boolean> {
    if (segments.length === 0) return true;
    return await this.within(segments, async (folder, name) => (await lstat(folder.at(name))).isDirectory());
  }

  async list(segments: readonly string[]): Promise<readonly Entry[]> {
    await using folder = await this.descend(segments);
    const found = await readdir(folder.at("."), { withFileTypes: true });
    return found.map((one) => ({
      name: one.name,
      type: one.isFile() ? "file" : one.isDirectory() ? "folder" : "other",
    }));
  }

  /**
   * A whole file, put in place in one step when `fill` says that it is good. The last check and the rename are one
   * step of ours: no lease ends between them.
   */
  async replace(
    segments: readonly string[],
    part: string,
    fill: (handle: FileHandle) => Promise<() => boolean>,
  ): Promise<boolean> {
    return await this.within(segments, async (folder, name) => {
      const handle = await open(folder.at(part), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644);
      let isPlaced = false;
      try {
        const mayPlace = await fill(handle);
        await handle.sync();
        if (mayPlace()) {
          renameSync(folder.at(part), folder.at(name));
          isPlaced = true;
        }
      } finally {
        await handle.close();
        if (!isPlaced) await unlink(folder.at(part));
      }
      return isPlaced;
    });
  }

  /** `mayAct` is asked at the last moment. */
  async makeFolder(segments: readonly string[], mayAct: () => boolean): Promise<void> {
    await this.within(segments, async (folder, name) => {
      if (mayAct()) await mkdir(folder.at(name));
    });
  }

  /** A file, a link itself, or an empty folder. */
  async remove(segments: readonly string[], mayAct: () => boolean): Promise<void> {
    await this.within(segments, async (folder, name) => {
      const found = await lstat(folder.at(name));
      if (!mayAct()) return;
      if (found.isDirectory()) await rmdir(folder.at(name));
      else await unlink(folder.at(name));
    });
  }

  async check(): Promise<void> {
    await using _root = await this.descend([]);
  }

  private async within<T>(
    segments: readonly string[],
    work: (folder: OpenFolder, name: string) => Promise<T>,
  ): Promise<T> {
    const name = segments.at(-1);
    if (name === undefined) throw Object.assign(new Error("It is the folder itself."), { code: "EISDIR" });
    await using folder = await this.descend(segments.slice(0, -1));
    return await work(folder, name);
  }

  private async descend(segments: readonly string[]): Promise<OpenFolder> {
    // The root is the operator's word, and may be reached by links.
    let folder = openFolder(await open(this.root, O_RDONLY | O_DIRECTORY), this.root);
    let path = this.root;
    for (const segment of segments) {
      path = join(path, segment);
      await using above = folder;
      folder = openFolder(await open(above.at(segment), O_RDONLY | O_DIRECTORY | O_NOFOLLOW), path);
    }
    return folder;
  }
}

function openFolder(handle: FileHandle, path: string): OpenFolder {
  const at = hasProc ? `/proc/self/fd/${handle.fd}` : path;
  return { at: (name) => `${at}/${name}`, [Symbol.asyncDispose]: () => handle.close() };
}
