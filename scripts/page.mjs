// Builds the page that the server shows at `/`, from dashboard/ to dashboard/dist, if that is missing or stale.
//
// The page has its own package.json and lock file, so that a server needs none of the tools that build it. Set-up for
// production installs them into a temporary folder and leaves only what was built; for work on the project they stay,
// because types are checked with them. A build that fails is reported and nothing else: the server says at `/` what is
// wrong, and everything else works.
//
// Like setup.mjs, this file must run on any Node from 20 on: plain JavaScript that imports only Node's own modules.
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What the page is built from, beside its own folder: the routes and types of the contract, and what its tsconfig extends. */
const sharedSources = ["src/sdk/wire.ts", "src/token/sha256.ts", "tsconfig.json"];
const stampName = "built-from";
const buildFailed = "build-failed.txt";

/**
 * `capture(command, arguments, folder)` runs a program and resolves with `{ code, output }`; `node` is the Node that runs
 * the build. Resolves with whether the page is there and current.
 */
export async function buildPage({ root, node, capture, say, keepsTools, install }) {
  const folder = join(root, "dashboard");
  if (!existsSync(join(folder, "package.json"))) return false;
  const digest = sourceDigest(root, folder);
  const isCurrent = readStamp(folder) === digest;
  if (isCurrent && (!keepsTools || hasTools(folder))) return true;
  const place = keepsTools || hasTools(folder) ? folder : copyOf(root, folder);
  try {
    if (!hasTools(place)) {
      say("installing what builds the page");
      const installed = await install(place);
      if (installed.code !== 0)
        return failed(folder, say, "npm could not install what builds the page", installed.output);
      writeFileSync(join(place, "node_modules", stampName), lockDigest(place));
    }
    if (isCurrent) return true;
    // Built beside it and put in place whole: another command may build at the same time, and a server may serve it.
    const out = join(folder, `dist.${process.pid}`);
    const vite = [join(place, "node_modules/vite/bin/vite.js"), "build", "--outDir", out, "--emptyOutDir"];
    const built = await capture(node, [...vite, "--logLevel", "warn"], place);
    if (built.code !== 0) {
      rmSync(out, { recursive: true, force: true });
      return failed(folder, say, "the page could not be built", built.output);
    }
    writeFileSync(join(out, stampName), digest);
    rmSync(join(folder, "dist"), { recursive: true, force: true });
    renameSync(out, join(folder, "dist"));
    return true;
  } finally {
    if (place !== folder) rmSync(join(place, ".."), { recursive: true, force: true });
  }
}

function failed(folder, say, sentence, output) {
  say(`${sentence}; the server works without it. npm run build tries again and shows the reason.`);
  mkdirSync(join(folder, "dist"), { recursive: true });
  writeFileSync(join(folder, "dist", buildFailed), `${sentence}\n\n${output}`);
  return false;
}

/** Where the tools are installed for one build. What the page shares with the project lies beside it as it does here. */
function copyOf(root, folder) {
  const place = mkdtempSync(join(tmpdir(), "leasehold-page-"));
  cpSync(folder, join(place, "dashboard"), {
    recursive: true,
    filter: (path) => !/[/\\]dashboard[/\\](?:dist[^/\\\\]*|node_modules)$/.test(path),
  });
  for (const path of sharedSources) {
    mkdirSync(join(place, path, ".."), { recursive: true });
    cpSync(join(root, path), join(place, path));
  }
  return join(place, "dashboard");
}

function hasTools(folder) {
  const stamp = join(folder, "node_modules", stampName);
  return existsSync(stamp) && readFileSync(stamp, "utf8") === lockDigest(folder);
}

function readStamp(folder) {
  const stamp = join(folder, "dist", stampName);
  return existsSync(stamp) ? readFileSync(stamp, "utf8") : null;
}

function lockDigest(folder) {
  return createHash("sha256")
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex");
}

/** Over names and contents, so that a checkout, which changes times, changes nothing. */
function sourceDigest(root, folder) {
  const hash = createHash("sha256");
  const own = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .filter((path) => !/[/\\]dashboard[/\\](?:dist[^/\\\\]*|node_modules)[/\\]/.test(path));
  for (const path of [...own.sort(), ...sharedSources.map((path) => join(root, path))]) {
    hash.update(`${path.slice(root.length)}\n`).update(readFileSync(path));
  }
  return hash.digest("hex");
}
