/**
 * An agent that is killed half-way. Run it: it does the first half of its work, saves a checkpoint, and dies. Then
 * another agent changes a file that it relied on. Run it again: it resumes at the checkpoint, gets the changes made
 * meanwhile, and continues.
 *
 *   node examples/resuming-agent.ts [DIGEST_FILE]     run it twice
 */
import { createClient } from "../src/sdk/index.ts";

const [, , digestFile = ".resuming-agent.json"] = process.argv;
const { LEASEHOLD_URL, LEASEHOLD_KEY, LEASEHOLD_KEY_FILE } = process.env;
const client = createClient({ url: LEASEHOLD_URL, key: LEASEHOLD_KEY, keyFile: LEASEHOLD_KEY_FILE });
const auth = "FILE:/example/src/auth.ts";
const tests = "FILE:/example/src/auth.test.ts";

const agent = await client.agent({ id: "example-resuming", digestFile });
const resumed = await agent.resume();

if (resumed === null) {
  await agent.withLease(tests, ({ setVersion }) => setVersion(tests, "tests-1"));
  await agent.saveDigest({
    resumePoint: "the tests are written, login() is not renamed yet",
    context: { rename: ["login", "signIn"] },
    intentBacklog: [{ predicate: "MUTATES", resource: auth }],
  });
  console.log("first half done, checkpoint saved");
  // Meanwhile, another agent.
  await client.withLease(auth, ({ setVersion }) => setVersion(auth, "somebody-else-1"), { purpose: "a hot fix" });
  process.kill(process.pid, "SIGKILL");
}

const { digest, observationUpdate } = resumed ?? { digest: null, observationUpdate: null };
console.log(`resumed: ${digest?.resume_point}`);
for (const { resource, version, agent_id: by } of observationUpdate?.changes ?? []) {
  console.log(`meanwhile ${by} changed ${resource} to ${version}`);
}
await agent.withLease(auth, ({ setVersion }) => setVersion(auth, "renamed-1"), { purpose: "rename login()" });
await agent.dropDigestFile();
console.log("second half done");
await client.close();
