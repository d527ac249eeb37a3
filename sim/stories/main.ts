/** Compares the stories of sim/stories with what the kernel does. Usage: npm run stories [-- --rewrite] */
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { docsPage, readStories, withStories } from "./story.ts";

const { values } = parseArgs({ options: { rewrite: { type: "boolean", default: false } } });
const stories = readStories();
const docs = readFileSync(docsPage, "utf8");
const pages = [...stories, { path: docsPage, text: docs, played: withStories(docs, stories) }];
const changed = pages.filter(({ text, played }) => text !== played);
for (const { path, played } of changed) {
  if (values.rewrite) writeFileSync(path, played);
  console.log(`stories: ${path} ${values.rewrite ? "is rewritten" : "differs; npm run stories -- --rewrite"}`);
}
console.log(`stories: ${stories.length} stories, ${changed.length} changed files`);
if (changed.length > 0 && !values.rewrite) process.exitCode = 1;
