import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseResourceName, type ResourceName } from "../../src/kernel/names/resource-name.ts";
import { type EventFilter, matches, Subject } from "../../src/server/events/event-filter.ts";
import { FollowerIndex } from "../../src/server/events/follower-index.ts";

const segment = fc.constantFrom("a", "b", "c", "*", "**", "a*", "?");
const resource = fc
  .tuple(fc.constantFrom("FILE", "GPU"), fc.array(segment, { maxLength: 3 }))
  .map(([type, segments]) => `${type}:/${segments.join("/")}`);
const agentId = fc.constantFrom("alice", "bob", "carol");
const type = fc.constantFrom("lease.granted", "lease.released", "agent.registered", "audit.recorded");

const filter: fc.Arbitrary<EventFilter> = fc.record({
  tenant: fc.constant("default"),
  types: fc.option(fc.array(type).map((types) => new Set(types))),
  resource: fc.option(resource.map(nameOf)),
  agentId: fc.option(agentId),
  seesAudit: fc.boolean(),
});
const subject = fc
  .tuple(type, fc.uniqueArray(agentId, { maxLength: 2 }), fc.array(resource, { maxLength: 2 }))
  .map(([of, agents, resources]) => new Subject(of, agents, resources));

function nameOf(text: string): ResourceName {
  const name = parseResourceName(text);
  assert.ok(!("problem" in name), text);
  return name;
}

test("the index finds exactly the followers that match an event, each once, also after others were added and removed", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ filter, stays: fc.boolean() }), { maxLength: 12 }),
      fc.array(subject, { maxLength: 6 }),
      (followers, subjects) => {
        const index = new FollowerIndex<(typeof followers)[number]>();
        for (const follower of followers) index.add(follower);
        for (const follower of followers) if (!follower.stays) index.delete(follower);
        const left = followers.filter(({ stays }) => stays);
        for (const one of subjects) {
          const found: (typeof followers)[number][] = [];
          index.find(one, (follower) => found.push(follower));
          const wanted = left.filter((follower) => matches(follower.filter, one));
          assert.deepEqual(
            found.map((follower) => followers.indexOf(follower)).toSorted(),
            wanted.map((follower) => followers.indexOf(follower)).toSorted(),
          );
        }
        for (const follower of left) index.delete(follower);
        assert.ok(index.isEmpty);
      },
    ),
    { numRuns: 500 },
  );
});
