/** Where a server listens and keeps its data, and is looked for, unless something else is said. */
export const defaultPort = 7117;
export const defaultUrl = `http://127.0.0.1:${defaultPort}`;

/** The folder of a user's own server. Its data is not in the working directory, which is often a repository. */
export function homeFolder(): string {
  const { join } = process.getBuiltinModule("node:path");
  return join(process.getBuiltinModule("node:os").homedir(), ".leasehold");
}
