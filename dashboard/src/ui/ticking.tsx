/**
 * What changes with time alone: words that count up or down, and bars that shrink. One timer writes them into the page,
 * past Preact: hundreds of them are on the screen, and drawing a component again for each second of each was most of the
 * page's work. All change in the same frame, and only those whose words differ.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import { serverNow } from "../api/session.ts";
import { isPaused } from "../live/pausing.ts";
import { brief, duration, moment } from "./words.ts";

type Tick = (now: number) => void;

/** Words count in seconds. What is gone in less than half a minute moves more often. */
const tickMs = 250;
const ticksPerSecond = 4;
const everySecond = new Set<Tick>();
const often = new Set<Tick>();
let turn = 0;

setInterval(() => {
  if (document.hidden || isPaused.peek()) return;
  const now = serverNow();
  for (const tick of often) tick(now);
  if (++turn % ticksPerSecond === 0) for (const tick of everySecond) tick(now);
}, tickMs);

function useTick<E extends Element>(write: (element: E, now: number) => void, isOften = false) {
  const element = useRef<E>(null);
  // After every drawing: what it shows may be another time now.
  useLayoutEffect(() => {
    const shown = element.current;
    if (shown === null) return;
    const tick = (now: number): void => write(shown, now);
    tick(serverNow());
    const kept = isOften ? often : everySecond;
    kept.add(tick);
    return () => void kept.delete(tick);
  });
  return element;
}

/** `words` of the present, in a `time`, or in a part of an SVG text. */
export function Ticking({ words, title }: { readonly words: (now: number) => string; readonly title?: string }) {
  const element = useTick<HTMLTimeElement>((shown, now) => writeText(shown, words(now)));
  return <time ref={element} title={title} />;
}

export function TickingSpan({ words }: { readonly words: (now: number) => string }) {
  const element = useTick<SVGTSpanElement>((shown, now) => writeText(shown, words(now)));
  return <tspan ref={element} />;
}

/** Numbers below keep their width, so that only the text is laid out again. */
function writeText(element: Element, words: string): void {
  const known = element.firstChild;
  if (known === null) element.textContent = words;
  else if (known.nodeValue !== words) known.nodeValue = words;
}

export function Since({ at }: { readonly at: number | string }) {
  const from = new Date(at).getTime();
  return <Ticking title={moment(at)} words={(now) => duration(now - from)} />;
}

export function Left({ until }: { readonly until: number }) {
  return <Ticking title={moment(until)} words={(now) => duration(Math.max(0, until - now))} />;
}

/** In little room: "4:57". */
export function BriefLeft({ until }: { readonly until: number }) {
  return <Ticking words={(now) => brief(Math.max(0, until - now))} />;
}

/** Half a percent is about a pixel: less is not drawn. */
const steps = 200;
const oftenBelowMs = 30_000;
const shortShare = 0.2;

/** The part of its time that a lease still has, as a bar that shrinks; `short` towards the end. */
export function ShrinkingFill({ endsAt, ttl }: { readonly endsAt: number; readonly ttl: number }) {
  let drawn = -1;
  const element = useTick<HTMLSpanElement>((shown, now) => {
    const share = Math.max(0, Math.min(1, (endsAt - now) / Math.max(1, ttl)));
    const step = Math.round(share * steps);
    if (step === drawn) return;
    drawn = step;
    shown.style.transform = `scaleX(${step / steps})`;
    shown.classList.toggle("short", share < shortShare);
  }, ttl < oftenBelowMs);
  return <span ref={element} class="fill" />;
}
