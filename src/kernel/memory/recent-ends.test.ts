import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Predicate, writing } from "../contract/predicates.ts";
import type { Write } from "../contract/write-records.ts";
import { apply, createState } from "../kernel.ts";
import { nameCovers, namesOverlap } from "../names/pattern.ts";
import { canonicalName } from "../names/resource-name.ts";
import { isAfter, RecentEnds } from "./recent-ends.ts";
import type { TenantEntry } from "./state.ts";

const state = createState();
const operator = { role: "operator", agentId: null, epoch: null } as const;
for (const tenantId of ["t1", "t2"]) {
  apply(state, { type: "create_tenant", tenant: tenantId, actor: operator, entropy: [1, 1], tenantId }, 0);
}
const tenants = [...state.tenants.values()];
const segment = fc.constantFrom("a", "b", "ab", "*", "a*", "?", "**");
const resource = fc
  .tuple(fc.constantFrom("FILE", "TABLE"), fc.array(segment, { maxLength: 4 }))
  .map(([type, path]) => canonicalName(`${type}:/${path.join("/")}`).text);
const end = fc.record({
  tenant: fc.integer({ min: 0, max: 1 }),
  resource,
  predicate: fc.constantFrom<Predicate>("CONSUMES", "MUTATES", "PROVIDES"),
  holder: fc.constantFrom("x", "y"),
  later: fc.integer({ min: 0, max: 2 }),
  version: fc.constantFrom("v1", null),
  looked: fc.boolean(),
  forget: fc.integer({ min: 0, max: 2 }),
});
const question = fc.record({ tenant: fc.integer({ min: 0, max: 1 }), resource, since: fc.nat(40) });

test("A4, A5: what is found among recent ends is what a search through a list of them finds", () => {
  fc.assert(
    fc.property(fc.array(end, { maxLength: 60 }), fc.array(question, { maxLength: 6 }), (ends, questions) => {
      const both = new Both();
      for (const [at, one] of ends.entries()) {
        both.add(one);
        for (let count = 0; count < one.forget; count++) both.forgetFirst();
        // Filed in between, so that some are in their chains and others are not.
        if (at % 7 === 0) for (const asked of questions.slice(0, 2)) both.compare(asked);
      }
      for (const asked of questions) both.compare(asked);
    }),
    { numRuns: 400 },
  );
});

test("A4, S4: thousands of ends come and go, and each search still finds the youngest", () => {
  const both = new Both();
  const base = { tenant: 0, predicate: "MUTATES", holder: "x", later: 1, version: null, looked: true } as const;
  for (let number = 0; number < 9_000; number++) {
    both.add({ ...base, resource: `FILE:/d${number % 5}/f${number % 700}` });
    if (number >= 2_000) both.forgetFirst();
    if (number % 1_500 === 1_499) {
      for (const name of ["FILE:/**", "FILE:/d3/**", `FILE:/d${number % 5}/f${number % 700}`, "FILE:/d1/f6"]) {
        both.compare({ tenant: 0, resource: name, since: number - 300 });
        both.compare({ tenant: 1, resource: name, since: 0 });
      }
    }
  }
});

interface Added {
  readonly tenant: number;
  readonly resource: string;
  readonly predicate: Predicate;
  readonly holder: string;
  readonly later: number;
  readonly version: string | null;
  readonly looked: boolean;
}

/** The columns, and a plain list. */
class Both {
  private readonly recent = new RecentEnds();
  private list: Write[] = [];
  private now = 0;
  private fence = 0;

  add({ tenant, resource: name, predicate, holder, later, version, looked }: Added): void {
    this.now += later;
    const lease = { resource: name, predicate, agentId: holder, holder, fence: ++this.fence };
    this.recent.add(tenantAt(tenant), lease, this.now, version, looked, this.fence);
    this.list.push({ tenant: tenantAt(tenant).record.id, ...lease, at: this.now, version, looked });
  }

  forgetFirst(): void {
    if (this.list.length === 0) return;
    this.list.shift();
    this.recent.forgetFirst();
  }

  compare({ tenant, resource: asked, since }: { tenant: number; resource: string; since: number }): void {
    const entry = tenantAt(tenant);
    const name = canonicalName(asked);
    const own = this.list.filter((write) => write.tenant === entry.record.id);
    const found = new Map<number, Write>();
    this.recent.eachWrite(
      entry,
      name,
      () => since,
      (write) => {
        found.set(write.fence, write);
        return false;
      },
    );
    const expected = own.filter(
      (write) => writing[write.predicate] && write.at >= since && namesOverlap(canonicalName(write.resource), name),
    );
    assert.deepEqual(
      [...found.values()].sort((a, b) => a.fence - b.fence),
      expected,
    );
    for (const holder of ["x", "y"]) {
      const looks = own.filter((write) => write.looked && write.holder === holder);
      const covering = looks.filter((write) => nameCovers(canonicalName(write.resource), name));
      const last = covering.reduce<Write | null>(
        (best, one) => (best === null || isAfter(one, best) ? one : best),
        null,
      );
      assert.deepEqual(this.recent.lastLook(entry, name, holder), last);
    }
    for (const [at, write] of this.list.entries()) {
      if (write.tenant !== entry.record.id || write.resource !== asked || !writing[write.predicate]) continue;
      const isLast = !own.some((one) => one.resource === asked && writing[one.predicate] && isAfter(one, write));
      assert.equal(this.recent.isLastWrite(this.recent.first + at), isLast);
    }
  }
}

function tenantAt(at: number): TenantEntry {
  const tenant = tenants[at];
  if (tenant === undefined) throw new Error(`No tenant ${at}`);
  return tenant;
}
