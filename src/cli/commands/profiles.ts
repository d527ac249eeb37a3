/** Servers by name: `--profile prod` in place of an address, a key file and certificates. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { joinAddresses } from "../../trust/addresses.ts";
import {
  type Profile,
  profileFields,
  profileNamed,
  profileNamePattern,
  profilesFile,
  readProfiles,
} from "../../trust/profiles.ts";
import type { Call, Command } from "../command.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

type Named = Profile & { readonly name: string };

const columns: readonly Column<Named>[] = [
  { title: "PROFILE", cell: ({ name }) => name },
  { title: "URL", cell: ({ url }) => url },
  { title: "TENANT", cell: ({ tenant }) => tenant ?? "" },
  { title: "KEY FILE", cell: ({ key_file: file }) => file ?? "", gives: "middle" },
  { title: "CA", cell: ({ tls_ca: file }) => file ?? "", gives: "middle" },
];

/** Files are remembered by their whole paths: a profile is used from every folder. */
const fileFlags = ["key-file", "tls-ca", "tls-cert", "tls-key"];

export const commands: readonly Command[] = [
  {
    name: "profiles",
    summary: "lists servers that can be named with --profile",
    about: "They are in ~/.config/leasehold/profiles.json, which holds no key: only in which file one is.",
    examples: [["leasehold profiles", "which are there?"]],
    run: async (call) => {
      const profiles = Object.entries(readProfiles(call.environment)).map(([name, profile]) => ({ name, ...profile }));
      call.out.show({ profiles }, () => call.out.table(profiles, columns, "There are no profiles."));
    },
  },
  {
    name: "profiles set",
    summary: "names a server, with how to reach it",
    names: "profile",
    usage: "NAME --url URL [--key-file FILE] [--tenant ID] [--tls-ca FILE]",
    examples: [
      [
        "leasehold profiles set prod --url https://leases.example.com --key-file ~/.leasehold/prod.key",
        "then: leasehold ls --profile prod",
      ],
    ],
    run: async (call) => {
      const name = call.word;
      if (!profileNamePattern.test(name))
        throw new UsageProblem(`"${name}" is not a name; use letters, digits and . _ -`);
      if (call.text("key") !== null)
        throw new UsageProblem("a profile holds no key; put it into a file, and give --key-file");
      if (call.text("url") === null) throw new UsageProblem("give the server's address with --url");
      const given = profileFields.flatMap((field) => {
        const flag = field.replaceAll("_", "-");
        const value = flag === "url" ? joinAddresses(call.address.urls) : call.text(flag);
        if (value === null) return [];
        return [[field, fileFlags.includes(flag) ? resolve(call.cwd, value) : value] as const];
      });
      const profile = Object.fromEntries(given) as unknown as Profile;
      write(call, { ...readProfiles(call.environment), [name]: profile });
      call.out.row({ name, ...profile }, columns);
    },
  },
  {
    name: "profiles rm",
    summary: "forgets a server's name",
    names: "profile",
    usage: "NAME",
    examples: [["leasehold profiles rm prod", "the server itself is not touched"]],
    run: async (call) => {
      profileNamed(call.word, call.environment);
      const { [call.word]: _removed, ...rest } = readProfiles(call.environment);
      write(call, rest);
      call.out.show({ name: call.word, removed: true }, () => `${call.word} is forgotten.`);
    },
  },
];

function write({ environment }: Call, profiles: Readonly<Record<string, Profile>>): void {
  const file = profilesFile(environment);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.new`;
  writeFileSync(temporary, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}
