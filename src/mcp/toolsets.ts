/** The groups that a client can choose tools by. Apart from the tools, because reading a choice must not load them. */
export const toolsets = ["core", "leases", "tasks", "resources", "operating"] as const;
export type Toolset = (typeof toolsets)[number];

/** What a client gets that does not choose: nine tools in few words, because each costs a model room. */
export const toolsetsDefault: readonly Toolset[] = ["core"];

/** `leases,tasks`, or `all`. A name that is not a toolset is returned as it is, for the error. */
export function readToolsets(text: string): readonly Toolset[] | { readonly unknown: string } {
  const names = text.split(",").map((name) => name.trim());
  if (names.includes("all")) return toolsets;
  const unknown = names.find((name) => !toolsets.some((one) => one === name));
  return unknown === undefined ? toolsets.filter((one) => names.includes(one)) : { unknown };
}

/** For messages and help. */
export const toolsetNames = [...toolsets, "all"].join(", ");
