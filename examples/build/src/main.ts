import { greeting } from "./greeting.js";

export const text = greeting("lease");
