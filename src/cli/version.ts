export { version } from "../server/version.ts";
