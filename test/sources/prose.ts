import type { Source } from "./imports.ts";

/** What people read in a file: all of a document; comments, strings and templates of a program. One piece a line. */
export function proseOf(source: Source): readonly string[] {
  return /\.(?:md|txt|tla)$/.test(source.path)
    ? paragraphsOf(source.text)
    : [...commentsOf(source.text), ...stringsOf(source.text)];
}

/** Comments, each on one line: a phrase may be broken at the end of a line. */
export function commentsOf(text: string): readonly string[] {
  return tokensOf(text).flatMap(({ comment }) => (comment === undefined ? [] : [onOneLine(comment)]));
}

/** Strings and templates, without the names of modules and the code in templates. */
function stringsOf(text: string): readonly string[] {
  return tokensOf(text).flatMap(({ quoted }) =>
    quoted === undefined || /^["'](?:node:|\.{1,2}\/)/.test(quoted) ? [] : [quoted.replace(/\$\{[^}]*\}/g, "…")],
  );
}

type Token = { readonly quoted: string | undefined; readonly comment: string | undefined };

/** Consecutive lines of `//` are one comment. */
function tokensOf(text: string): readonly Token[] {
  const token =
    /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*|\/\*[\s\S]*?\*\/)/g;
  return [...text.matchAll(token)].map(([, quoted, comment]) => ({ quoted, comment }));
}

function onOneLine(comment: string): string {
  return comment
    .replace(/^\/\*+\s*|\s*\*+\/$/g, "")
    .replace(/\s*\n[ \t]*(?:\*(?!\/)|\/\/)?[ \t]*/g, " ")
    .replace(/^\/\/\s*/, "");
}

/** Table rows stay lines of their own; other lines of a paragraph are joined. */
function paragraphsOf(text: string): readonly string[] {
  return text.split(/\n\s*\n|\n(?=[|\-#>]|\d+\. )/).map((paragraph) => paragraph.replace(/\s*\n\s*/g, " "));
}
