/** What the user has chosen, and how a key changes it. */
import { type Row, type Sort, sorts } from "./rows.ts";

export interface Choice {
  readonly sort: Sort;
  readonly filter: string;
  /** What is being typed; null while nothing is. */
  readonly typing: string | null;
  /** The key of the selected row; null where none was chosen yet. */
  readonly selected: string | null;
  /** The lease that is about to be revoked, if the user says yes. */
  readonly asks: string | null;
  readonly isPaused: boolean;
  readonly showsHelp: boolean;
  /** The last thing that was done. */
  readonly message: string;
}

export const firstChoice: Choice = {
  sort: "state",
  filter: "",
  typing: null,
  selected: null,
  asks: null,
  isPaused: false,
  showsHelp: false,
  message: "",
};

/** What a key asks of the program, beside the changed choice. */
export type Action = "quit" | "revoke" | "refresh" | null;

export interface Pressed {
  readonly choice: Choice;
  readonly action: Action;
}

const up = ["k", "\u001b[A", "\u001bOA"];
const down = ["j", "\u001b[B", "\u001bOB"];

/** `shown` are the rows in the order in which they stand on the screen. */
export function press(choice: Choice, key: string, shown: readonly Row[]): Pressed {
  if (key === "\u0003") return { choice, action: "quit" };
  if (choice.typing !== null) return { choice: type(choice, choice.typing, key), action: null };
  if (choice.asks !== null) {
    const isYes = key === "y" || key === "Y";
    return {
      choice: { ...choice, asks: isYes ? choice.asks : null, message: isYes ? "" : "not revoked" },
      action: isYes ? "revoke" : null,
    };
  }
  const still = (changed: Partial<Choice>): Pressed => ({
    choice: { ...choice, message: "", ...changed },
    action: null,
  });
  if (up.includes(key)) return still({ selected: neighbour(choice, shown, -1) });
  if (down.includes(key)) return still({ selected: neighbour(choice, shown, 1) });
  switch (key) {
    case "q":
    case "\u001b":
      return choice.showsHelp ? still({ showsHelp: false }) : { choice, action: "quit" };
    case "s":
      return still({ sort: sorts[(sorts.indexOf(choice.sort) + 1) % sorts.length] ?? "state" });
    case "/":
      return still({ typing: choice.filter });
    case "r": {
      const item = shown.find(({ key: one }) => one === choice.selected)?.item;
      return item?.type === "lease"
        ? still({ asks: item.lease.id })
        : still({ message: "choose a lease first, with the arrows" });
    }
    case "p":
      return still({ isPaused: !choice.isPaused });
    case "?":
    case "h":
      return still({ showsHelp: !choice.showsHelp });
    case " ":
      return { choice, action: "refresh" };
    default:
      return { choice, action: null };
  }
}

function type(choice: Choice, typed: string, key: string): Choice {
  switch (key) {
    case "\r":
    case "\n":
      return { ...choice, filter: typed, typing: null };
    case "\u001b":
      return { ...choice, typing: null };
    case "\u007f":
    case "\b":
      return { ...choice, typing: [...typed].slice(0, -1).join("") };
    case "\u0015":
      return { ...choice, typing: "" };
    default:
      return /^[\P{Cc}]$/u.test(key) ? { ...choice, typing: typed + key } : choice;
  }
}

function neighbour({ selected }: Choice, shown: readonly Row[], step: number): string | null {
  const at = shown.findIndex(({ key }) => key === selected);
  if (at === -1) return shown[0]?.key ?? null;
  return shown[Math.min(Math.max(at + step, 0), shown.length - 1)]?.key ?? null;
}
