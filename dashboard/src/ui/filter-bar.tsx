/**
 * One field for all filters of a list. `type:build` filters by a field, anything else is searched for. What is filtered by
 * stands beside it as chips that can be taken away; all of it is in the address.
 */
import { useState } from "preact/hooks";
import { place, setQuery } from "./router.ts";

export interface FilterField {
  /** In the address, and before the colon. */
  readonly name: string;
  readonly suggestions: readonly string[];
}

interface Props {
  readonly fields: readonly FilterField[];
  readonly label: string;
}

export function FilterBar({ fields, label }: Props) {
  const [text, setText] = useState("");
  const { query } = place.value;
  const active = [...fields.map(({ name }) => name), "q"].flatMap((name) => {
    const value = query.get(name) ?? "";
    return value === "" ? [] : [[name, value] as const];
  });
  const options = fields.flatMap(({ name, suggestions }) =>
    suggestions.length === 0 ? [`${name}:`] : suggestions.map((value) => `${name}:${value}`),
  );
  const add = (given: string): void => {
    const words = given.trim();
    const [, name = "q", value = words] = /^(\w+):(.*)$/.exec(words) ?? [];
    const isField = fields.some((field) => field.name === name);
    if (words === "" || (isField && value === "")) return;
    setQuery(isField ? name : "q", isField ? value : words);
    setText("");
  };
  return (
    <form
      class="filter-bar"
      onSubmit={(event) => {
        event.preventDefault();
        add(text);
      }}
    >
      {active.map(([name, value]) => (
        <button
          key={name}
          type="button"
          class="chip filter"
          aria-label={`No longer filter by ${name}`}
          onClick={() => setQuery(name, "")}
        >
          <span class="quiet">{name === "q" ? "has" : name}</span> {value} <span aria-hidden="true">×</span>
        </button>
      ))}
      <label class="search">
        <span class="visually-hidden">{label}</span>
        <input
          type="search"
          placeholder={label}
          list="filters"
          value={text}
          onInput={({ currentTarget }) => {
            // A suggestion that was chosen is whole: nothing is left to type.
            if (options.includes(currentTarget.value) && !currentTarget.value.endsWith(":")) add(currentTarget.value);
            else setText(currentTarget.value);
          }}
        />
        <datalist id="filters">
          {options.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      </label>
    </form>
  );
}
