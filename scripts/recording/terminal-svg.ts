/** Screens of a terminal as one animated SVG: each is shown for its time, and then it begins again. No script is in it. */

export interface Frame {
  readonly lines: readonly string[];
}

const character = { width: 7.83, height: 18 };
const margin = 14;
const barHeight = 30;
const ground = "#10151c";
const ink = "#d5dbe1";
/** By the codes of src/cli/paint.ts. */
const colours: Readonly<Record<string, string>> = {
  "31": "#ff7b72",
  "32": "#56d364",
  "33": "#e3b341",
  "34": "#79c0ff",
  "36": "#76e3ea",
};

/** A code of the terminal: a colour, bold, or the end of all. */
const code = new RegExp(`(${String.fromCharCode(27)}\\[\\d+m)`);

export function drawTerminal(title: string, frames: readonly Frame[], secondsEach: number): string {
  const columns = Math.max(...frames.flatMap(({ lines }) => lines.map((line) => [...withoutCodes(line)].length)));
  const rows = Math.max(...frames.map(({ lines }) => lines.length));
  const width = Math.ceil(columns * character.width + 2 * margin);
  const height = rows * character.height + barHeight + 2 * margin;
  const total = frames.length * secondsEach;
  const share = (100 / frames.length).toFixed(3);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title>${escaped(title)}</title>`,
    "<style>",
    `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:${ink};white-space:pre}`,
    `.f{visibility:hidden;animation:show ${total}s steps(1) infinite}`,
    `@keyframes show{0%{visibility:visible}${share}%{visibility:hidden}}`,
    // Without motion, one screen is shown.
    "@media (prefers-reduced-motion:reduce){.f{animation:none}.f:last-of-type{visibility:visible}}",
    "</style>",
    `<rect width="${width}" height="${height}" rx="8" fill="${ground}"/>`,
    ...["#ff5f56", "#ffbd2e", "#27c93f"].map(
      (fill, at) => `<circle cx="${20 + at * 18}" cy="17" r="5.5" fill="${fill}"/>`,
    ),
    `<text x="${width / 2}" y="21" text-anchor="middle" opacity="0.6">${escaped(title)}</text>`,
    ...frames.map(({ lines }, nth) => {
      const drawn = lines.map((line, row) => drawLine(line, margin + barHeight + row * character.height)).join("");
      return `<g class="f" style="animation-delay:${(nth * secondsEach).toFixed(2)}s">${drawn}</g>`;
    }),
    "</svg>",
    "",
  ].join("\n");
}

function drawLine(line: string, y: number): string {
  const spans = runsOf(line.trimEnd());
  if (spans.every(({ text }) => text.trim() === "")) return "";
  const drawn = spans.map(({ text, style }) =>
    style === "" ? escaped(text) : `<tspan${style}>${escaped(text)}</tspan>`,
  );
  return `<text x="${margin}" y="${y}" xml:space="preserve">${drawn.join("")}</text>`;
}

/** A line in pieces of one style each. */
function runsOf(line: string): readonly { readonly text: string; readonly style: string }[] {
  const runs: { text: string; style: string }[] = [];
  let codes: string[] = [];
  for (const part of line.split(code)) {
    const number = code.test(part) ? part.slice(2, -1) : null;
    if (number !== null) codes = number === "0" ? [] : [...codes, number];
    else if (part !== "") runs.push({ text: part, style: styleOf(codes) });
  }
  return runs;
}

function styleOf(codes: readonly string[]): string {
  const fill = codes.map((code) => colours[code]).find((colour) => colour !== undefined);
  return [
    fill === undefined ? "" : ` fill="${fill}"`,
    codes.includes("1") ? ' font-weight="bold"' : "",
    codes.includes("2") ? ' opacity="0.65"' : "",
  ].join("");
}

function withoutCodes(line: string): string {
  return line
    .split(code)
    .filter((part) => !code.test(part))
    .join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
