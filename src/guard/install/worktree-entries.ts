/**
 * The hooks with which Claude Code has its worktrees made (src/guard/worktree-hook.ts). They are in the user's own settings and
 * not in those that are checked in: where Leasehold is absent, such a hook would make no worktree at all.
 */
import { worktreeEvents as events, isRecord } from "../payload.ts";
import { CannotChange } from "./changes.ts";
import { type Json, withField } from "./json-text.ts";

export const worktreeFile = ".claude/settings.local.json";
/** Longer than git may take, and the wait for its turn. */
const timeoutSeconds = 180;

export function addWorktreeHooks(config: Json, program: string): Json {
  const without = removeWorktreeHooks(config);
  const hooks = events.reduce<Json>((found, event) => {
    const command = `${program} guard hook claude ${event}`;
    return withField(found, event, [
      ...entriesIn(found, event),
      { hooks: [{ type: "command", command, timeout: timeoutSeconds }] },
    ]);
  }, hooksOf(without));
  return withField(without, "hooks", hooks);
}

export function removeWorktreeHooks(config: Json): Json {
  const { hooks: found } = config;
  if (found === undefined) return config;
  const hooks = events.reduce<Json>((kept, event) => {
    if (kept[event] === undefined) return kept;
    const others = entriesIn(kept, event).filter(
      (entry) => !JSON.stringify(entry).includes(` guard hook claude ${event}"`),
    );
    return withField(kept, event, others.length === 0 ? undefined : others);
  }, hooksOf(config));
  return withField(config, "hooks", Object.keys(hooks).length === 0 ? undefined : hooks);
}

/** Whether they are in. */
export function hasWorktreeHooks({ hooks }: Json): boolean {
  return (
    isRecord(hooks) &&
    events.every((event) => JSON.stringify(hooks[event] ?? null).includes(` guard hook claude ${event}"`))
  );
}

function hooksOf({ hooks }: Json): Json {
  if (hooks === undefined) return {};
  if (isRecord(hooks)) return hooks;
  throw new CannotChange(`"hooks" in ${worktreeFile} is not an object; fix it first`);
}

function entriesIn(hooks: Json, event: string): readonly unknown[] {
  const list = hooks[event] ?? [];
  if (Array.isArray(list)) return list;
  throw new CannotChange(`"hooks.${event}" in ${worktreeFile} is not a list; fix it first`);
}
