/** Text of others on this terminal: what an agent calls its purpose must not move the cursor, nor turn the line round. */

const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const combining = /\p{M}/u;

export function plain(text: string): string {
  return text.replaceAll(unprintable, "\u{fffd}");
}

/** The same for a text of several lines, which stay lines. */
export function plainLines(text: string): string {
  return text.split("\n").map(plain).join("\n");
}

/** In columns of the terminal. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += combining.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** Cut to this many columns, with a mark. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return "";
  if (widthOf(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const character of text) {
    width += widthOf(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Names say most at their end. */
export function cutFront(text: string, columns: number): string {
  if (columns <= 0) return "";
  if (widthOf(text) <= columns) return text;
  const characters = [...text].reverse();
  return [...cut(characters.join(""), columns)].reverse().join("");
}

/** The beginning of a name says where it is, and its end what it is: the end keeps a little more. */
export function cutMiddle(text: string, columns: number): string {
  if (columns <= 0) return "";
  if (widthOf(text) <= columns) return text;
  const front = Math.floor((columns - 1) * 0.4);
  const head = front === 0 ? "…" : cut(text, front + 1);
  return head + cutFront(text, columns - widthOf(head) + 1).slice(1);
}

export function padTo(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}
