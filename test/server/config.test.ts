import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readLine } from "../../src/cli/arguments.ts";
import { serveCommand, settingsIn } from "../../src/cli/commands/serve.ts";
import { commandHelp } from "../../src/cli/help.ts";
import { createPaint } from "../../src/cli/paint.ts";
import { environmentName, fileName, flagName, loadConfig, names, settings } from "../../src/server/config/config.ts";

/** As `leasehold serve` reads them. */
function flagsOf(args: readonly string[]) {
  return settingsIn(readLine(serveCommand, args));
}

function configFile(t: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-config-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "leasehold.json");
  writeFileSync(file, text);
  return file;
}

test("a flag overrides the environment, the environment the file, and the file the default", (t) => {
  const file = configFile(t, JSON.stringify({ port: 3, host: "::1", rate_limit: 30 }));
  const environment = { LEASEHOLD_CONFIG: file, LEASEHOLD_PORT: "2", LEASEHOLD_HOST: "127.0.0.2" };
  const config = loadConfig(flagsOf(["--port", "1"]), environment);
  assert.deepEqual(
    [config.port, config.host, config.rateLimit, config.data],
    [1, "127.0.0.2", 30, join(homedir(), ".leasehold/data")],
  );
  assert.equal(loadConfig(flagsOf(["--port=1", "--config", file]), {}).host, "::1");
});

test("lists are given several times, with commas between, or as an array", (t) => {
  const flags = flagsOf(["--allowed-host", "a.example", "--allowed-host", "b.example,c.example"]);
  assert.deepEqual(loadConfig(flags, {}).allowedHosts, ["a.example", "b.example", "c.example"]);
  assert.deepEqual(
    loadConfig({}, { LEASEHOLD_ALLOWED_ORIGINS: "https://a.example, http://b.example:3000" }).allowedOrigins,
    ["https://a.example", "http://b.example:3000"],
  );
  const file = configFile(t, JSON.stringify({ allowed_hosts: ["d.example"] }));
  assert.deepEqual(loadConfig({ config: file }, {}).allowedHosts, ["d.example"]);
});

test("a wrong setting is refused with one line that names its source and the allowed values", (t) => {
  const cases: readonly (readonly [
    args: readonly string[],
    environment: Record<string, string>,
    file: string | null,
    said: RegExp,
  ])[] = [
    [["--port", "70000"], {}, null, /^--port is "70000"; give a whole number from 0 to 65535$/],
    [["--port", "1e3"], {}, null, /^--port is "1e3"/],
    [[], { LEASEHOLD_PORT: "http" }, null, /^LEASEHOLD_PORT is "http"/],
    [[], {}, `{"port": "7117x"}`, /^"port" in the config file is "7117x"/],
    [[], {}, `{"port": -1}`, /^"port" in the config file is -1/],
    [[], {}, `{"prot": 1}`, /^"prot" in the config file is not a setting; known are host, port/],
    [[], {}, `[1]`, /does not hold a JSON object$/],
    [[], {}, `{`, /cannot be read/],
    [["--store", "disk"], {}, null, /^--store is "disk"; give one of sqlite, memory, postgres:\/\//],
    [["--log-level", "loud"], {}, null, /^--log-level is "loud"/],
    [["--allowed-origin", "example.com"], {}, null, /^--allowed-origin has "example.com"; give origins such as/],
    [["--allowed-host", "http://x"], {}, null, /^--allowed-host has "http:\/\/x"/],
    [["--data", ""], {}, null, /^--data is empty/],
    [
      ["--prot", "1"],
      {},
      null,
      /^there is no flag --prot; did you mean --port\?; `leasehold serve --help` lists the flags$/,
    ],
    [["--port"], {}, null, /^--port takes a value/],
    [["--config", "/nowhere/at/all.json"], {}, null, /^the config file \/nowhere\/at\/all.json cannot be read: ENOENT/],
  ];
  for (const [args, environment, file, said] of cases) {
    const more = file === null ? [] : ["--config", configFile(t, file)];
    assert.throws(
      () => loadConfig(flagsOf([...args, ...more]), environment),
      (error: Error) =>
        ["ConfigProblem", "UsageProblem"].includes(error.name) &&
        said.test(error.message) &&
        !error.message.includes("\n"),
      `${args.join(" ")} ${JSON.stringify(environment)} ${file}`,
    );
  }
});

test("the help lists every setting with all its names, and each default is within its bounds", () => {
  const help = commandHelp(serveCommand, createPaint(false));
  for (const name of names) {
    const { usual, read } = settings[name];
    const flag = flagName(name);
    assert.ok(help.includes(`--${flag} `), flag);
    assert.ok(help.includes(environmentName(name)), name);
    assert.ok(!("problem" in read(usual)), name);
    assert.match(fileName(name), /^[a-z_]+$/);
  }
  assert.equal(environmentName("port"), "LEASEHOLD_PORT");
  assert.equal(environmentName("data"), "LEASEHOLD_DATA");
});
