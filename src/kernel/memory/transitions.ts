/** State machines as tables. Their type makes them total: a state or a move without an answer does not compile. */
export type Transitions<State extends string, Move extends string> = Readonly<
  Record<State, Readonly<Record<Move, State | "refused">>>
>;

/** Where a move leads. Callers refuse what is refused before they move, so that to come here with it is a bug. */
export function after<State extends string, Move extends string>(
  table: Transitions<State, Move>,
  from: State,
  move: Move,
): State {
  const to: State | "refused" = table[from][move];
  if (!isState(to)) throw new Error(`${from} refuses "${move}"`);
  return to;
}

function isState<State extends string>(to: State | "refused"): to is State {
  return to !== "refused";
}
