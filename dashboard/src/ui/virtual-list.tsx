/** A list of which only the rows in view exist: tens of thousands cost as much as forty. All rows have one height. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface Props<T> {
  readonly items: readonly T[];
  readonly rowHeight: number;
  readonly keyOf: (item: T) => string;
  readonly row: (item: T, index: number) => ComponentChildren;
  readonly label: string;
  /** The last rows are in view: more may be read. */
  readonly onEnd?: () => void;
  /** Called with the rows in view, after each change of them. */
  readonly onView?: (items: readonly T[]) => void;
  readonly empty: ComponentChildren;
}

const margin = 6;

export function VirtualList<T>({ items, rowHeight, keyOf, row, label, onEnd, onView, empty }: Props<T>) {
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = (): void => {
      const top = element.scrollTop;
      const height = element.clientHeight;
      setView((before) => (before.top === top && before.height === height ? before : { top, height }));
    };
    measure();
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);

  const first = Math.max(0, Math.floor(view.top / rowHeight) - margin);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + margin);
  const shown = items.slice(first, last);
  useLayoutEffect(() => {
    onView?.(shown);
    if (onEnd !== undefined && items.length > 0 && last >= items.length) onEnd();
  });

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard (WCAG 2.1.1).
    <section class="scroll" ref={box} tabIndex={0} aria-label={label}>
      {items.length === 0 ? (
        <div class="empty">{empty}</div>
      ) : (
        <ul class="rows" style={{ height: `${items.length * rowHeight}px` }}>
          {shown.map((item, at) => (
            <li
              key={keyOf(item)}
              class="row"
              style={{ transform: `translateY(${(first + at) * rowHeight}px)`, height: `${rowHeight}px` }}
            >
              {row(item, first + at)}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
