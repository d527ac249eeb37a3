/** The frame around the screens: where one is, whether it is live, who one is. */
import { useEffect } from "preact/hooks";
import { askWho, isAbove, session, signOut, tenant } from "./api/session.ts";
import { isPaused } from "./live/pausing.ts";
import { begin, end, overview, pause } from "./live/store.ts";
import { link } from "./live/stream.ts";
import { AdminScreen } from "./screens/admin.tsx";
import { AgentScreen } from "./screens/agent.tsx";
import { ClusterScreen } from "./screens/cluster.tsx";
import { EventsScreen } from "./screens/events.tsx";
import { InboxScreen } from "./screens/inbox.tsx";
import { LedgerScreen } from "./screens/ledger.tsx";
import { NowScreen } from "./screens/now.tsx";
import { ResourcesScreen } from "./screens/resources.tsx";
import { Mark, SignIn } from "./screens/sign-in.tsx";
import { TaskScreen } from "./screens/task.tsx";
import { TasksScreen } from "./screens/tasks.tsx";
import { WaitsScreen } from "./screens/waits.tsx";
import { ConfirmDialog, notice } from "./ui/confirm.tsx";
import { go, hrefOf, place } from "./ui/router.ts";

/** Each with the key that opens it, after `g`. */
const screens = [
  ["now", "Now", "n"],
  ["waits", "Waits", "w"],
  ["resources", "Resources", "r"],
  ["tasks", "Tasks", "t"],
  ["inbox", "Inbox", "i"],
  ["ledger", "Ledger", "l"],
  ["events", "Events", "e"],
  ["cluster", "Cluster", "c"],
  ["operating", "Operating", "o"],
] as const;

export function App() {
  const [first = "now", second] = place.value.path;
  const isSignedIn = session.value?.signed_in === true;
  const isSigningIn = first === "sign-in" && second !== undefined;
  useEffect(() => void askWho(), []);
  useEffect(() => {
    if (!isSignedIn || isSigningIn) return;
    void begin();
    return end;
  }, [isSignedIn, isSigningIn]);
  useEffect(listenToKeys, []);
  if (!isSignedIn || isSigningIn) return <SignIn code={isSigningIn ? second : null} />;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>("#main")?.focus()}>
        To the content
      </button>
      <header class="top">
        <a class="brand" href={hrefOf(["now"])}>
          <Mark /> <span>Leasehold</span>
        </a>
        <nav aria-label="Screens">
          {screens
            .filter(([name]) => name !== "cluster" || isAbove.value)
            .map(([name, words, key]) => (
              <a
                key={name}
                href={hrefOf([name])}
                aria-current={isWithin(first, name) ? "page" : undefined}
                title={`g then ${key}`}
              >
                {words}
                {name === "inbox" ? <Overdue /> : null}
              </a>
            ))}
        </nav>
        <LinkState />
        <Who />
      </header>
      <Content first={first} second={second} />
      <ConfirmDialog />
      <Notice />
    </>
  );
}

function isWithin(first: string, name: string): boolean {
  return first === name || (first === "agents" && name === "now");
}

function Content({ first, second }: { readonly first: string; readonly second: string | undefined }) {
  switch (first) {
    case "waits":
      return <WaitsScreen />;
    case "resources":
      return <ResourcesScreen />;
    case "agents":
      return second === undefined ? <NowScreen /> : <AgentScreen key={second} id={second} />;
    case "tasks":
      return second === undefined ? <TasksScreen /> : <TaskScreen key={second} id={second} />;
    case "inbox":
      return <InboxScreen />;
    case "ledger":
      return <LedgerScreen />;
    case "events":
      return <EventsScreen />;
    case "cluster":
      return <ClusterScreen />;
    case "operating":
      return <AdminScreen />;
    default:
      return <NowScreen />;
  }
}

function Overdue() {
  const overdue = overview.value?.obligations["OVERDUE"] ?? 0;
  return overdue === 0 ? null : <span class="badge lost">{overdue}</span>;
}

const linkWords = {
  connecting: "connecting",
  live: "live",
  paused: "paused",
  broken: "not connected; trying again",
} as const;

function LinkState() {
  const state = link.value;
  return (
    <div class={`link ${state}`}>
      <span role="status">
        <span class="dot" aria-hidden="true" /> {linkWords[state]}
      </span>
      <button
        type="button"
        class="button"
        aria-pressed={isPaused.value}
        onClick={() => pause(!isPaused.value)}
        title="p"
      >
        {isPaused.value ? "Go on" : "Pause"}
      </button>
    </div>
  );
}

function Who() {
  const known = session.value;
  return (
    <div class="who">
      <span class="quiet">
        {known?.role} · {tenant.value ?? known?.tenant_id}
      </span>
      {known?.csrf_token == null ? null : (
        <button type="button" class="button" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </div>
  );
}

const noticeMs = 6_000;

function Notice() {
  const words = notice.value;
  useEffect(() => {
    if (words === null) return;
    const timer = setTimeout(() => (notice.value = null), noticeMs);
    return () => clearTimeout(timer);
  }, [words]);
  return (
    <div class="notice" role="status">
      {words}
    </div>
  );
}

/** `g` and a letter open a screen, `/` goes to the search, `p` pauses. */
function listenToKeys(): () => void {
  let isGoing = false;
  const onKey = (event: KeyboardEvent): void => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
    const screen = isGoing ? screens.find(([, , key]) => key === event.key) : undefined;
    isGoing = event.key === "g";
    if (screen !== undefined) go([screen[0]]);
    else if (event.key === "p") pause(!isPaused.peek());
    else if (event.key === "/") {
      event.preventDefault();
      document.querySelector<HTMLInputElement>(".search input")?.focus();
    }
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}
