/** Where a server listens, and is looked for, unless something else is said. */
export const defaultPort = 7117;
export const defaultUrl = `http://127.0.0.1:${defaultPort}`;
