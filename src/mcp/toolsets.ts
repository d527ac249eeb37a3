/** The groups that a client can choose tools by. Apart from the tools, because reading a choice must not load them. */
export const toolsets = ["leases", "tasks", "resources", "operating"] as const;
export type Toolset = (typeof toolsets)[number];

/** `leases,tasks`. A name that is not a toolset is returned as it is, for the error. */
export function readToolsets(text: string): readonly Toolset[] | { readonly unknown: string } {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !toolsets.some((one) => one === name));
  return unknown === undefined ? toolsets.filter((one) => names.includes(one)) : { unknown };
}
