/**
 * Writes the production dependencies as a CycloneDX 1.5 document: npm run sbom [-- FILE], by default sbom.json.
 *
 * It is made from the lock file alone, so the same lock file gives the same document. `npm sbom --omit=dev` was tried
 * first: it leaves out a package that a development dependency needs as well (`zod`, `@modelcontextprotocol/core`).
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export type Packages = Readonly<Record<string, LockedPackage>>;

export interface Component {
  readonly type: "library";
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly scope: "required" | "optional";
  readonly purl: string;
  readonly hashes: readonly { readonly alg: "SHA-512"; readonly content: string }[];
  readonly licenses: readonly { readonly expression: string }[];
}

const root = fileURLToPath(new URL("..", import.meta.url));

export function lockedPackages(): Packages {
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, "utf8")) as { readonly packages: Packages };
  return packages;
}

/** By their paths in the lock file: what `npm ci --omit=dev` installs on some platform. */
export function productionPaths(packages: Packages): readonly string[] {
  return Object.keys(packages)
    .filter((path) => path.startsWith("node_modules/") && !packages[path]?.dev && !packages[path]?.link)
    .sort();
}

export function sbomOf(packages: Packages): object {
  const paths = productionPaths(packages);
  const { name = "", version = "", license = "" } = packages[""] ?? {};
  const main = { type: "application", "bom-ref": refOf(name, version), name, version, purl: purlOf(name, version) };
  // The workspaces (`runtime`) belong to the application; what they need, it needs.
  const own = Object.keys(packages).filter((path) => !path.startsWith("node_modules/"));
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: { ...main, licenses: [{ expression: license }] } },
    components: paths.map((path) => componentOf(path, packages[path] ?? {})),
    dependencies: [
      { ref: main["bom-ref"], dependsOn: [...new Set(own.flatMap((path) => neededBy(packages, path)))].sort() },
      ...paths.map((path) => ({
        ref: refOf(nameOf(path), packages[path]?.version ?? ""),
        dependsOn: neededBy(packages, path),
      })),
    ],
  };
}

function componentOf(path: string, { version = "", integrity, license, optional }: LockedPackage): Component {
  const name = nameOf(path);
  const [algorithm, digest = ""] = (integrity ?? "").split("-");
  if (algorithm !== "sha512") throw new Error(`${path} has no sha512 integrity in the lock file`);
  return {
    type: "library",
    "bom-ref": refOf(name, version),
    name,
    version,
    scope: optional === true ? "optional" : "required",
    purl: purlOf(name, version),
    hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }],
    licenses: license === undefined ? [] : [{ expression: license }],
  };
}

/** As Node resolves them: in the package's own folder first, then outwards. */
function neededBy(packages: Packages, path: string): readonly string[] {
  const { dependencies = {}, optionalDependencies = {} } = packages[path] ?? {};
  return Object.keys({ ...dependencies, ...optionalDependencies })
    .flatMap((name) => {
      for (let folder = path; ; folder = outwards(folder)) {
        const found =
          packages[`${folder === "" || !folder.startsWith("node_modules/") ? "" : `${folder}/`}node_modules/${name}`];
        if (found !== undefined) return [refOf(name, found.version ?? "")];
        if (!folder.startsWith("node_modules/")) return [];
      }
    })
    .sort();
}

function outwards(path: string): string {
  const at = path.lastIndexOf("/node_modules/");
  return at === -1 ? "" : path.slice(0, at);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

function refOf(name: string, version: string): string {
  return `${name}@${version}`;
}

function purlOf(name: string, version: string): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

if (import.meta.main) {
  const [path = "sbom.json"] = process.argv.slice(2);
  writeFileSync(path, `${JSON.stringify(sbomOf(lockedPackages()), null, 2)}\n`);
  console.error(`${path}: ${productionPaths(lockedPackages()).length} packages`);
}
