/** Node's own part of the SDK's transport, loaded when a call is first made. */

export { createNodeHttp } from "./http-client.ts";
export { openNodeSocket } from "./web-socket.ts";
