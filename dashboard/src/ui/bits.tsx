/** Small parts that all screens are made of. */
import type { ComponentChildren } from "preact";
import { hrefOf, place, setQuery } from "./router.ts";
import { middle } from "./words.ts";

export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const most = Math.max(1, ...values);
  const step = 100 / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(2)},${(23 - (value / most) * 22).toFixed(2)}`);
  return (
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <polygon class="spark-area" points={`0,24 ${points.join(" ")} 100,24`} />
      <polyline class="spark-line" points={points.join(" ")} />
    </svg>
  );
}

/**
 * A name of a resource: type first, the path cut in the middle, whole in its title. The last segment says most, so it stands
 * apart: where room is short the folders before it give way.
 */
export function ResourceName({ name, max = 44 }: { readonly name: string; readonly max?: number }) {
  const at = name.indexOf(":");
  const end = name.lastIndexOf("/");
  const tail = middle(name.slice(end), Math.ceil(max / 2));
  return (
    <span class="resource" title={name}>
      <span class="kind">{name.slice(0, at)}</span>
      <span class="path">{middle(name.slice(at + 1, end), max - tail.length)}</span>
      <span class="path-end">{tail}</span>
    </span>
  );
}

export function AgentLink({ id, max = 32 }: { readonly id: string; readonly max?: number }) {
  return (
    <a class="name" href={hrefOf(["agents", id])} title={id}>
      {middle(id, max)}
    </a>
  );
}

export function TaskLink({ id }: { readonly id: string }) {
  return (
    <a class="name mono" href={hrefOf(["tasks", id])} title={id}>
      {middle(id, 18)}
    </a>
  );
}

export function Badge({ tone, children }: { readonly tone: string; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export interface Chip {
  readonly value: string;
  readonly label: string;
  readonly count?: number | undefined;
  readonly tone?: string;
}

/** A filter that the address keeps; one of them, or none. */
export function Chips({
  name,
  chips,
  label,
}: {
  readonly name: string;
  readonly chips: readonly Chip[];
  readonly label: string;
}) {
  const chosen = place.value.query.get(name) ?? "";
  return (
    <fieldset class="chips" aria-label={label}>
      {chips.map(({ value, label: words, count, tone }) => (
        <button
          key={value}
          type="button"
          class={`chip ${tone ?? ""}`}
          aria-pressed={chosen === value}
          onClick={() => setQuery(name, chosen === value ? "" : value)}
        >
          {words}
          {count === undefined ? null : <b>{count}</b>}
        </button>
      ))}
    </fieldset>
  );
}

export function Search({
  name = "q",
  label,
  suggestions = [],
}: {
  readonly name?: string;
  readonly label: string;
  readonly suggestions?: readonly string[];
}) {
  const value = place.value.query.get(name) ?? "";
  return (
    <label class="search">
      <span class="visually-hidden">{label}</span>
      <input
        type="search"
        placeholder={label}
        value={value}
        list={suggestions.length === 0 ? undefined : `list-${name}`}
        onInput={({ currentTarget }) => setQuery(name, currentTarget.value, true)}
      />
      {suggestions.length === 0 ? null : (
        <datalist id={`list-${name}`}>
          {suggestions.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </label>
  );
}

export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Json({ value }: { readonly value: unknown }) {
  return <pre class="json">{JSON.stringify(value, null, 2)}</pre>;
}

export function Panel({
  title,
  children,
  actions,
}: {
  readonly title: ComponentChildren;
  readonly children: ComponentChildren;
  readonly actions?: ComponentChildren;
}) {
  return (
    <section class="panel">
      <header>
        <h2>{title}</h2>
        <div class="actions">{actions}</div>
      </header>
      {children}
    </section>
  );
}

export function Screen({
  title,
  aside,
  tools,
  children,
}: {
  readonly title: ComponentChildren;
  /** Beside the title: the state of it all, in a few words. */
  readonly aside?: ComponentChildren;
  readonly tools?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <main class="screen" id="main" tabIndex={-1}>
      <header class="screen-head">
        <h1>{title}</h1>
        {aside}
        <div class="tools">{tools}</div>
      </header>
      {children}
    </main>
  );
}
