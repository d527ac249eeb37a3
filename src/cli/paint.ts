/** Colours, or none. */
const codes = { bold: 1, dim: 2, inverse: 7, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;

export type Colour = keyof typeof codes;
export type Paint = Readonly<Record<Colour, (text: string) => string>> & { readonly isOn: boolean };

export function createPaint(isOn: boolean): Paint {
  const paint = (code: number) => (text: string) => (isOn && text !== "" ? `\u001b[${code}m${text}\u001b[0m` : text);
  const painted = Object.fromEntries(Object.entries(codes).map(([name, code]) => [name, paint(code)]));
  return { ...(painted as Record<Colour, (text: string) => string>), isOn };
}

/** Green while there is plenty, yellow below a half, red below a fifth. */
export function shareColour(share: number): Colour {
  return share < 0.2 ? "red" : share < 0.5 ? "yellow" : "green";
}
