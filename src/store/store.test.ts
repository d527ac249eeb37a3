import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describeStore } from "./contract.ts";
import { sealJournals } from "./journal-files.ts";
import { createMemoryDisk, createMemoryStore } from "./memory.ts";
import { createSqliteStore } from "./sqlite.ts";
import { dataFiles } from "./sqlite-files.ts";

describeStore("memory", async () => {
  const disk = createMemoryDisk();
  return {
    store: () => createMemoryStore(disk),
    moveEpoch: () => {
      disk.epoch += 1;
    },
    dispose: async () => {},
  };
});

describeStore("sqlite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-store-"));
  return {
    store: () => createSqliteStore(folder),
    moveEpoch: () => {
      const db = new DatabaseSync(dataFiles(folder).database);
      db.exec("UPDATE meta SET epoch = epoch + 1");
      db.close();
      sealJournals(dataFiles(folder));
    },
    dispose: () => rm(folder, { recursive: true }),
  };
});
