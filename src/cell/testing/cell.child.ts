/** A cell in a process of its own, for tests that stop and kill it: binds one lease and says where, in one line. */

import { CellKeys } from "../../token/node/cell-keys.ts";
import { readCellConfig } from "../config.ts";
import { CellCore } from "../core.ts";

const [resource = "", driver = "", options = "{}", ttlMs = "1000"] = process.argv.slice(2);
const text = JSON.stringify({
  cell: "child",
  resources: [{ resource, driver, options: JSON.parse(options) as object }],
});
const keys = new CellKeys("child", [{ id: "k1", key: new Uint8Array(32), retiresAt: null }]);
const core = new CellCore(readCellConfig(text, "child.json"), keys);
const expiresAt = Date.now() + Number(ttlMs);
const whose = { tenant: "acme", id: "lease-1", holder: "ann", predicate: "MUTATES" } as const;
const lease = { ...whose, resource, generation: 1, fence: 1, units: 1, expiresAt };
console.log(JSON.stringify({ ...(await core.bind(lease)), expiresAt }));
process.stdin.resume().on("end", () => process.exit(0));
