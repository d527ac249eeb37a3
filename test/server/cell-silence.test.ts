/** A separate file, and so a separate process: simulated time would block the sockets of other tests. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { cellLinkLimits } from "../../src/protocol/resources/cell-link.ts";
import { openLink } from "./cell-peer.ts";
import { serve } from "./harness.ts";

test("a connection that does not enrol in time is closed", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const server = await serve(t);
  const peer = await openLink(t, server.address.url);
  t.mock.timers.tick(cellLinkLimits.helloMsMax);
  t.mock.timers.reset();
  assert.equal((await peer.closed).code, 4003);
});
