/** Whether the page stands still: nothing is read, applied or drawn until it goes on. */
import { signal } from "@preact/signals";

export const isPaused = signal(false);
