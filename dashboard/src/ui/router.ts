/** The address is the state: what a screen shows and how it is filtered is behind `#`, and can be sent to somebody else. */
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

export interface Place {
  /** "now", "agents/alice" … */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export const place = computed<Place>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  return { path: path === "" ? ["now"] : path.split("/").map(decoded), query: new URLSearchParams(query) };
});

export function hrefOf(path: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const search = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `#/${path.map(encodeURIComponent).join("/")}${search}`;
}

export function go(path: readonly string[], query: Readonly<Record<string, string>> = {}): void {
  location.hash = hrefOf(path, query).slice(1);
}

/** Changes one part of the filter. `isPassing`: typing makes no entries in the browser's history. */
export function setQuery(name: string, value: string, isPassing = false): void {
  const { path, query } = place.peek();
  const next = new URLSearchParams(query);
  if (value === "") next.delete(name);
  else next.set(name, value);
  const href = `${hrefOf(path)}${next.size === 0 ? "" : `?${next}`}`;
  if (isPassing) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  hash.value = href;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
