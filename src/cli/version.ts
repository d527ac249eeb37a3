export { version } from "../server/config/version.ts";
