// What npm would publish: `package`, and `platform` for this machine. Installed in an empty folder, without a network.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const target = fileURLToPath(new URL("../", import.meta.url));
const main = JSON.parse(readFileSync(join(target, "package/package.json"), "utf8"));
const folder = mkdtempSync(join(tmpdir(), "leasehold-npm-"));
const packed = {};

function npm(cwd, ...args) {
  return execFileSync("npm", [...args, "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, npm_config_cache: join(folder, "cache"), LEASEHOLD_STORE: "" },
  });
}

const node = (...args) => execFileSync(process.execPath, args, { cwd: folder, encoding: "utf8", stdio: "pipe" });

before(() => {
  for (const name of ["package", "platform"]) {
    [packed[name]] = JSON.parse(npm(join(target, name), "pack", "--json", "--pack-destination", folder));
  }
  writeFileSync(join(folder, "package.json"), "{}");
  npm(folder, "install", ...Object.values(packed).map(({ filename }) => `./${filename}`));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function files(folder, prefix = "") {
  const entries = readdirSync(join(folder, prefix), { withFileTypes: true });
  const of = (entry) => `${prefix}${entry.name}`;
  return entries.flatMap((entry) => (entry.isDirectory() ? files(folder, `${of(entry)}/`) : [of(entry)]));
}

test("the packages have what they should, and nothing else", () => {
  const listed = (name) => packed[name].files.map(({ path }) => path).sort();
  assert.deepEqual(listed("package"), files(join(target, "package")).sort());
  const licenses = ["LICENSE-APACHE", "LICENSE-MIT"];
  assert.deepEqual(listed("platform"), [...licenses, "README.md", "leasehold.node", "package.json"]);
  for (const name of licenses) assert.ok(listed("package").includes(name), name);
  const named = JSON.stringify([main.main, main.types, main.exports, main.bin]).match(/(?<=:")\.\/[^"]+/g);
  assert.ok(named.length > 10);
  for (const path of named) assert.ok(existsSync(join(folder, "node_modules/leasehold", path)), path);
  assert.equal(main.engines.node, ">=20");
  const versions = new Set(Object.values(main.optionalDependencies));
  assert.deepEqual([...versions], [main.version]);
  assert.equal(main.dependencies, undefined);
  assert.ok(statSync(join(folder, "node_modules/leasehold")).isDirectory());
  assert.ok(!existsSync(join(folder, "node_modules/leasehold/leasehold.node")), "it is in the other one");
});

test("the example of the README runs, as ESM and as CommonJS", () => {
  const [, example] = /^```js\n(.*?)^```$/ms.exec(readFileSync(join(target, "package/README.md"), "utf8"));
  const modules = {
    "example.mjs": example,
    "example.cjs": `(async () => {\n${example.replace(/^import (.*) from (".*");$/m, "const $1 = require($2);")}})();`,
  };
  for (const [name, code] of Object.entries(modules)) {
    writeFileSync(join(folder, name), code);
    // The second one finds the report made.
    const report = name === "example.mjs" ? "nobody else makes this report, now or later\n" : "";
    assert.match(node(name), new RegExp(`^fencing token \\d+\n${report}$`), name);
  }
  assert.ok(existsSync(join(folder, "locks.db")));
});

test("every entry of the exports can be imported, and nothing else", () => {
  copyFileSync(join(target, "test/programs/exports.mjs"), join(folder, "exports.mjs"));
  const entries = Object.keys(main.exports).filter((entry) => !entry.endsWith(".json"));
  assert.ok(entries.includes("./edge"));
  assert.deepEqual(node("exports.mjs").trim().split("\n"), entries.map((entry) => `leasehold${entry.slice(1)}`));
  assert.throws(() => node("-e", 'require("leasehold/lib/client.cjs")'), /ERR_PACKAGE_PATH_NOT_EXPORTED/);
});

test("no version of a library with an adapter keeps the package from being installed", () => {
  // npm refuses to install beside another version than a peer's, also where the peer is optional and nobody uses it.
  assert.deepEqual(main.peerDependencies, { "@nestjs/common": "*", fastify: "*", "prom-client": "*" });
  const optional = Object.keys(main.peerDependencies).map((name) => [name, { optional: true }]);
  assert.deepEqual(main.peerDependenciesMeta, Object.fromEntries(optional));
});

test("npx runs the command", () => {
  assert.match(npm(folder, "exec", "--no", "--", "leasehold", "--help"), /inspect/);
  const exec = ["exec", "--store", "sqlite:locks.db", "a job", "--", "sh", "-c", "cat; echo done"];
  assert.equal(npm(folder, "exec", "--no", "--", "leasehold", ...exec), "done\n");
});

test("without the package of the platform, the error names it and says what to do", () => {
  const [name] = Object.keys(main.optionalDependencies).filter((name) => existsSync(join(folder, "node_modules", name)));
  const load = () => node("-e", 'require("leasehold")');
  writeFileSync(join(folder, "node_modules", name, "leasehold.node"), "of another machine");
  assert.throws(load, /the native code of leasehold, .*leasehold\.node, cannot be loaded on \S+: .*leasehold\.node/);
  rmSync(join(folder, "node_modules", dirname(name)), { recursive: true });
  assert.throws(load, new RegExp(`${name} cannot be found from .*binary\\.cjs\\. Install leasehold on this machine, without --omit=optional`));
  const [os, cpu] = ["platform", "arch"].map((what) => `Object.defineProperty(process, "${what}", { value: "strange" });`);
  const strange = () => node("-e", `${os} ${cpu} require("leasehold")`);
  assert.throws(strange, /leasehold has no native code for strange-strange, but for darwin-arm64, .*leasehold\/edge/);
});
