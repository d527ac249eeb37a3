/** Before anything is changed: what will happen, in words, and why it is done. Who did it and why is in the audit log. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { wordsOf } from "../api/client.ts";

export interface Action {
  /** In the imperative: "Revoke the lease". */
  readonly title: string;
  /** What it does to whom. */
  readonly consequence: string;
  readonly isDangerous?: boolean;
  /** Fields to fill in. */
  readonly fields?: readonly Field[];
  readonly run: (values: Readonly<Record<string, string>>) => Promise<string | undefined>;
}

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly isOptional?: boolean;
  readonly value?: string;
  readonly options?: readonly string[];
  readonly isLong?: boolean;
}

const asked = signal<Action | null>(null);
const state = signal<{ readonly isBusy: boolean; readonly error: string | null }>({ isBusy: false, error: null });
/** The last thing that was done. */
export const notice = signal<string | null>(null);

export function ask(action: Action): void {
  state.value = { isBusy: false, error: null };
  asked.value = action;
}

export function ActionButton({ action, label }: { readonly action: Action; readonly label: string }) {
  return (
    <button type="button" class={action.isDangerous === true ? "button danger" : "button"} onClick={() => ask(action)}>
      {label}
    </button>
  );
}

export function ConfirmDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const action = asked.value;
  useEffect(() => {
    if (action !== null) dialog.current?.showModal();
    else dialog.current?.close();
  }, [action]);
  if (action === null) return null;
  const { isBusy, error } = state.value;
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
    state.value = { isBusy: true, error: null };
    try {
      notice.value = (await action.run(values)) ?? `Done: ${action.title}.`;
      asked.value = null;
    } catch (fault) {
      state.value = { isBusy: false, error: wordsOf(fault) };
    }
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="confirm-title" onClose={() => (asked.value = null)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <h2 id="confirm-title">{action.title}</h2>
        <p>{action.consequence}</p>
        {(action.fields ?? []).map((field) => (
          <FieldInput key={field.name} field={field} />
        ))}
        {error === null ? null : (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={() => (asked.value = null)}>
            Cancel
          </button>
          <button
            type="submit"
            class={action.isDangerous === true ? "button danger solid" : "button solid"}
            disabled={isBusy}
          >
            {action.title}
          </button>
        </div>
      </form>
    </dialog>
  );
}

function FieldInput({ field }: { readonly field: Field }) {
  const { name, label, isOptional = false, value = "", options, isLong } = field;
  const shared = { name, required: !isOptional };
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is one of the three below.
    <label class="field">
      <span>
        {label}
        {isOptional ? " (optional)" : ""}
      </span>
      {options !== undefined ? (
        <select {...shared}>
          {options.map((one) => (
            <option key={one} selected={one === value}>
              {one}
            </option>
          ))}
        </select>
      ) : isLong === true ? (
        <textarea {...shared} rows={5}>
          {value}
        </textarea>
      ) : (
        <input {...shared} defaultValue={value} autocomplete="off" />
      )}
    </label>
  );
}
