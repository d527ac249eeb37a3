/** Signing in: a key once, or the link of `leasehold open`. The page keeps neither. */
import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../api/client.ts";
import { askWho, session, signIn, trouble } from "../api/session.ts";

export function SignIn({ code }: { readonly code: string | null }) {
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const attempt = async (input: { key: string } | { code: string }): Promise<void> => {
    setBusy(true);
    try {
      await signIn(input);
      // The code is used up, and the address would only look like a secret.
      if (location.hash.startsWith("#/sign-in")) location.replace("#/now");
    } catch (fault) {
      setError(wordsOf(fault));
    }
    setBusy(false);
  };
  // A code is used once.
  useEffect(() => {
    if (code !== null) void attempt({ code });
  }, [code]);
  const known = session.value;
  return (
    <main class="sign-in" id="main">
      <h1>
        <Mark /> Leasehold
      </h1>
      {known === null ? (
        <p>{trouble.value ?? "Connecting…"}</p>
      ) : known.sign_in === "link" ? (
        <>
          <p>This server is its owner's alone.</p>
          <p>
            Run <code>leasehold open</code> as the user that runs it. The link that it opens is good once.
          </p>
        </>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void attempt({ key: String(new FormData(event.currentTarget).get("key")).trim() });
          }}
        >
          <label class="field">
            <span>Key</span>
            <input name="key" type="password" autocomplete="current-password" required />
          </label>
          <button type="submit" class="button solid" disabled={isBusy}>
            Sign in
          </button>
          <p class="quiet">
            It is sent once, and kept nowhere in this browser. A cookie that no script can read stands for it.
          </p>
        </form>
      )}
      {error === null ? null : (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {trouble.value === null ? null : (
        <button type="button" class="button" onClick={() => void askWho()}>
          Try again
        </button>
      )}
    </main>
  );
}

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 18 16" aria-hidden="true">
      <rect width="18" height="4" rx="2" />
      <rect y="6" width="12" height="4" rx="2" />
      <rect y="12" width="6" height="4" rx="2" />
    </svg>
  );
}
