import { describeStore } from "./contract.ts";
import { createPostgresStore } from "./postgres.ts";
import { testSchema } from "./testing/postgres-fixture.ts";

describeStore("postgres", async () => {
  const data = await testSchema();
  return {
    store: () => createPostgresStore({ url: data.url, leaseMs: 60_000 }),
    moveEpoch: async () =>
      void (await data.query(`UPDATE ${data.schema}.shards SET epoch = epoch + 1, journal_epoch = epoch + 1`)),
    dispose: () => data.drop(),
  };
});
