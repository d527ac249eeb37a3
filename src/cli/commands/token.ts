/** Capability tokens: inspected and narrowed here, without a server; verified, and their keys rotated, by the server. */

import type { TokenKeys } from "../../sdk/wire.ts";
import { type Caveat, type FoundCaveat, inspect, narrow, tokenLimits, tokenPrefix } from "../../token/index.ts";
import type { Call, Command } from "../command.ts";
import { confirmWithoutKey, yesFlag } from "../confirming.ts";
import { showDuration } from "../durations.ts";
import { exitCodes } from "../exit-codes.ts";
import { plain } from "../plain-text.ts";
import { Failure, isServerError, UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const tokenUsage = "[TOKEN]";
const tokenAbout =
  "Without TOKEN, or with -, it is read from standard input, where other users of the machine do not see it.";

export const commands: readonly Command[] = [
  {
    name: "token inspect",
    summary: "shows what a token says, without its secret",
    usage: tokenUsage,
    about: `${tokenAbout} Whether it is true only the cell and the server know: see \`token verify\`.`,
    offline: true,
    examples: [["leasehold token inspect < token.txt", "whose is it, and until when?"]],
    run: async (call) => {
      const inspected = inspect(await readToken(call));
      if ("code" in inspected) throw new Failure(`${inspected.detail} (${inspected.code})`, exitCodes.notSo);
      const { claims, caveats } = inspected;
      const body = {
        tenant: claims.tenant,
        cell: claims.cell,
        resource: claims.resource,
        lease_id: claims.lease,
        generation: claims.generation,
        fence: claims.fence,
        predicate: claims.predicate,
        key_id: claims.keyId,
        expires_at: timeText(claims.expiresAt),
        ends_at: timeText(inspected.expiresAt),
        caveats: caveats.map(caveatJson),
      };
      const leftMs = inspected.expiresAt - Date.now();
      call.out.show(body, () => {
        const rows = Object.entries(body).filter(([name]) => name !== "caveats");
        const lines = rows.map(([name, value]) => `${name.padEnd(12)}${plain(String(value))}`);
        lines.push(
          `${"left".padEnd(12)}${leftMs > 0 ? showDuration(leftMs) : "none: it has ended, by this machine's clock"}`,
        );
        for (const caveat of caveats) lines.push(`${"only".padEnd(12)}${plain(caveatWords(caveat))}`);
        return lines.join("\n");
      });
    },
  },
  {
    name: "token narrow",
    summary: "makes a token that can do less, without a server",
    usage: `${tokenUsage} --operations read --path /reports …`,
    about: `${tokenAbout} It cannot be widened again; caveats add up.`,
    flags: {
      operations: { sign: "LIST", words: "only these, with commas between: read, write, connect, run" },
      path: { sign: "PATH", words: "only this path of the resource and what is below it" },
      for: { sign: "TIME", words: "only for this long from now" },
      until: { sign: "TIME", words: "only until this time, such as 2031-05-01T12:00:00Z" },
      program: { sign: "PATH", words: "only for the program with this real path" },
      hardware: { sign: "LABEL", words: "only on hardware with this label" },
      bytes: { sign: "N", words: "only N bytes, over all operations" },
    },
    offline: true,
    examples: [
      [
        "leasehold token narrow --operations read --path /reports --for 30s < token.txt",
        "for a helper that only reads",
      ],
    ],
    run: async (call) => {
      const caveats = readCaveats(call);
      if (caveats.length === 0) throw new UsageProblem("narrow it with --operations, --path, --for or another flag");
      const narrowed = narrow(await readToken(call), caveats);
      if (typeof narrowed !== "string") throw new UsageProblem(`${narrowed.detail} (${narrowed.code})`);
      call.out.show({ token: narrowed }, () => narrowed);
    },
  },
  {
    name: "token verify",
    summary: "asks the server whether a token is valid; exit code 7 if it is not",
    usage: "[TOKEN] [--resource RES] [--operation NAME]",
    about: `${tokenAbout} A caveat on something that is not named here fails.`,
    flags: {
      resource: { sign: "RES", words: "what it is to be used on" },
      operation: {
        sign: "NAME",
        words: "what is to be done: read, write, connect, run",
        choices: ["read", "write", "connect", "run"],
      },
    },
    examples: [["leasehold token verify --operation read < token.txt", "would it be accepted?"]],
    run: async (call) => {
      const { out } = call;
      const token = await readToken(call);
      const name = call.text("resource");
      const resource = name === null ? null : call.resource(name);
      try {
        const verified = await call.ask("verify_token", { token, resource, operation: call.text("operation") });
        const { lease, tenant, caveats } = verified;
        const narrowed = caveats.length === 0 ? "" : `, narrowed by ${caveats.map(({ type }) => type).join(", ")}`;
        out.show(
          verified,
          () =>
            `good: ${lease.predicate} ${lease.resource} of ${lease.agent_id} (${tenant}), fence ${lease.fence}, ${showDuration(lease.expires_in_ms)} left${narrowed}`,
        );
        return exitCodes.done;
      } catch (error) {
        if (!isServerError(error) || !refusals.has(error.code)) throw error;
        if (out.isJson) out.json(error.body);
        out.note(`the token is refused: ${error.detail} (${error.code})`);
        return exitCodes.notSo;
      }
    },
  },
  {
    name: "token rotate",
    summary: "makes a new key for tokens; cells are notified at once",
    usage: "[--overlap TIME]",
    about: `Tokens of the older key stay valid for six minutes, longer than any of them lives, or for --overlap. --overlap 0 ends
them at once; holders get new ones with their next heartbeat. The keys stay in the data folder.`,
    flags: {
      overlap: { sign: "TIME", words: "how long tokens of the older key stay valid [6m]" },
      yes: yesFlag,
    },
    examples: [
      ["leasehold token rotate", "as a habit"],
      ["leasehold token rotate --overlap 0", "somebody may have seen the key"],
    ],
    run: async (call) => {
      const { out, ask } = call;
      const overlapMs = call.durationMs("overlap");
      await confirmWithoutKey(call, "tokens that others hold stay valid for the overlap and no longer");
      const keys = await ask("rotate_token_keys", overlapMs === null ? {} : { overlap_ms: overlapMs });
      out.show(keys, () => out.table(keys.keys, columns, ""));
    },
  },
];

function readCaveats(call: Call): readonly Caveat[] {
  const given = <T>(value: T | null, caveat: (value: T) => Caveat) => (value === null ? [] : [caveat(value)]);
  const sorted = (names: string) => [...new Set(names.split(",").map((name) => name.trim()))].sort();
  return [
    ...given(call.text("operations"), (names) => ({ type: "operations", operations: sorted(names) })),
    ...given(call.text("path"), (path) => ({ type: "path", path })),
    ...given(call.durationMs("for"), (forMs) => ({ type: "expiry", expiresAt: Date.now() + forMs })),
    ...given(call.text("until"), (until) => ({ type: "expiry", expiresAt: readTime(until) })),
    ...given(call.text("program"), (program) => ({ type: "program", program })),
    ...given(call.text("hardware"), (hardware) => ({ type: "hardware", hardware })),
    ...given(call.integer("bytes"), (bytesMax) => ({ type: "bytes", bytesMax })),
  ];
}

function readTime(text: string): number {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isSafeInteger(at) && at >= 0) return at;
  throw new UsageProblem(`--until is "${text.slice(0, 80)}"; give a time such as 2031-05-01T12:00:00Z`);
}

/** An error does not repeat the token: it is a credential. */
async function readToken({ words }: Call): Promise<string> {
  const [word] = words;
  const text = word === undefined || word === "-" ? await readInput() : word;
  const token = text.trim();
  if (token.startsWith(tokenPrefix) && !/\s/.test(token)) return token;
  throw new UsageProblem(`not a token; give one that begins with ${tokenPrefix}, as an argument or on standard input`);
}

async function readInput(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageProblem("give the token as an argument, or on standard input");
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > 2 * tokenLimits.textLengthMax) break;
  }
  return text;
}

/** A token may hold any number; not each is a date. */
function timeText(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString();
}

function caveatJson(caveat: FoundCaveat): object {
  if (caveat.type === "expiry") return { type: caveat.type, expires_at: timeText(caveat.expiresAt) };
  return caveat.type === "bytes" ? { type: caveat.type, bytes_max: caveat.bytesMax } : caveat;
}

const caveatTexts: { readonly [T in FoundCaveat["type"]]: (caveat: Extract<FoundCaveat, { type: T }>) => string } = {
  expiry: ({ expiresAt }) => `until ${timeText(expiresAt)}`,
  path: ({ path }) => `${path} and below`,
  operations: ({ operations }) => operations.join(", "),
  program: ({ program }) => `the program ${program}`,
  hardware: ({ hardware }) => `hardware ${hardware}`,
  bytes: ({ bytesMax }) => `${bytesMax} bytes`,
  unknown: ({ code }) =>
    `a caveat that this version does not know (kind ${code}); cells that do not know it refuse the token`,
};

function caveatWords(caveat: FoundCaveat): string {
  return (caveatTexts[caveat.type] as (caveat: FoundCaveat) => string)(caveat);
}

const refusals: ReadonlySet<string> = new Set([
  "token_invalid",
  "stale_token",
  "caveat_failed",
  "lease_expired",
  "lease_released",
  "lease_revoked",
  "resource_fenced",
]);

type Key = TokenKeys["keys"][number];

const columns: readonly Column<Key>[] = [
  { title: "KEY", cell: ({ key_id: id }) => id },
  { title: "SINCE", cell: ({ created_at: at }) => at },
  { title: "GOOD UNTIL", cell: ({ retires_at: at }) => at ?? "present" },
];
