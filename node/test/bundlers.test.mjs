// Tools that bundle a program, or copy the files that it needs: native code must be found by what they make.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder } from "./helpers/folder.mjs";
import { PLATFORM, binary, folderOf, installed, other } from "./helpers/others.mjs";

const USES = `
  const client = await connect("memory:");
  const lease = await client.acquire("a");
  console.log("fencing token", lease.token, typeof redlock.default, typeof fence.RedisGuard, typeof fake.connect);
  await client.close();`;
const PARTS = { "{ connect }": "leasehold", redlock: "leasehold/compat/redlock", fence: "leasehold/fence", fake: "leasehold/testing" };
const parts = Object.entries(PARTS);
const PROGRAMS = {
  "app.mjs": `${parts.map(([name, of]) => `import ${name.startsWith("{") ? name : `* as ${name}`} from "${of}";`).join("\n")}${USES}`,
  "app.cjs": `${parts.map(([name, of]) => `const ${name} = require("${of}");`).join("\n")}(async () => {${USES}\n})();`,
};
const PRINTS = /^fencing token \d+ function function function\n$/;

const runs = (path) => execFileSync(process.execPath, [basename(path)], { cwd: dirname(path), encoding: "utf8", stdio: "pipe" });
const fails = (path) => spawnSync(process.execPath, [basename(path)], { cwd: dirname(path), encoding: "utf8" }).stderr;

test("what is written out for tools that trace files is every platform that has a package", () => {
  const folder = new URL("../package/", import.meta.url);
  const source = readFileSync(new URL("lib/binary.cjs", folder), "utf8");
  const { optionalDependencies } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
  const written = [...source.matchAll(/require\.resolve\("(@leasehold\/[^"]+)"\)/g)].map(([, name]) => name);
  assert.deepEqual(written, Object.keys(optionalDependencies));
  const release = readFileSync(join(process.env.LEASEHOLD_SOURCE, ".github/workflows/release.yml"), "utf8");
  const built = [...release.matchAll(/\{ platform: ([\w-]+),/g)].map(([, name]) => `@leasehold/${name}`);
  assert.deepEqual(built.sort(), written);
});

for (const name of Object.keys(PROGRAMS)) {
  test(`@vercel/nft finds the native code, from ${name}`, async (t) => {
    const { nodeFileTrace } = other("@vercel/nft");
    const from = installed(t, PROGRAMS);
    const { fileList } = await nodeFileTrace([join(from, name)], { base: from });
    const to = folder(t);
    for (const file of fileList) {
      mkdirSync(dirname(join(to, file)), { recursive: true });
      copyFileSync(join(from, file), join(to, file));
    }
    assert.match(runs(join(to, name)), PRINTS);
  });
}

const webpack = (config) =>
  new Promise((resolve, reject) =>
    other("webpack")({ mode: "production", target: "node", ...config }, (error, stats) =>
      error ? reject(error) : resolve([...stats.compilation.warnings, ...stats.compilation.errors].map(String)),
    ),
  );

async function vite(root, ssr) {
  const { build } = await import(pathToFileURL(join(folderOf("vite"), "dist/node/index.js")));
  const said = [];
  const say = (text) => void said.push(text);
  const customLogger = { info() {}, warn: say, warnOnce: say, error: say, clearScreen() {}, hasErrorLogged: () => false };
  await build({ root, configFile: false, customLogger, ssr, build: { ssr: "app.mjs", outDir: "out" } });
  return said;
}

const esbuild = async (root, name, format, out) => {
  const settings = { absWorkingDir: root, entryPoints: [name], outfile: out, bundle: true, platform: "node", format, logLevel: "silent" };
  const { warnings } = await other("esbuild").build(settings);
  return warnings;
};

/** Each makes a bundle with all of our JavaScript in it, and answers what it says about it. */
const BUNDLERS = {
  "esbuild, CommonJS": ["out/app.cjs", (root, out) => esbuild(root, "app.cjs", "cjs", out)],
  "esbuild, ES module": ["out/app.mjs", (root, out) => esbuild(root, "app.mjs", "esm", out)],
  "webpack, CommonJS": [
    "out/app.cjs",
    (root) => webpack({ context: root, entry: "./app.cjs", output: { path: join(root, "out"), filename: "app.cjs" } }),
  ],
  "webpack, ES module": [
    "out/app.mjs",
    (root) =>
      webpack({
        context: root,
        entry: "./app.mjs",
        experiments: { outputModule: true },
        output: { path: join(root, "out"), filename: "app.mjs", module: true },
      }),
  ],
  "Vite, everything in the bundle": ["out/app.mjs", (root) => vite(root, { noExternal: true })],
};

for (const [name, [out, bundle]] of Object.entries(BUNDLERS)) {
  test(`a bundle runs where its packages are, and elsewhere says what it needs: ${name}`, async (t) => {
    const root = installed(t, PROGRAMS);
    assert.deepEqual(await bundle(root, out), []);
    assert.match(runs(join(root, out)), PRINTS);

    const alone = folder(t);
    cpSync(join(root, "out"), join(alone, "out"), { recursive: true });
    const said = fails(join(alone, out));
    assert.ok(said.includes(`${PLATFORM} cannot be found from `), said);
    assert.match(said, /app\.[cm]js\. That is a bundle, and bundles cannot contain native code: .*leasehold is external/);
    copyFileSync(join(root, "node_modules", PLATFORM, "leasehold.node"), join(alone, "out/leasehold.node"));
    assert.match(runs(join(alone, out)), PRINTS, "with the file beside it");
  });
}

test("Vite leaves packages where they are, and Bun takes the native code along", async (t) => {
  const root = installed(t, PROGRAMS);
  assert.deepEqual(await vite(root), []);
  assert.match(runs(join(root, "out/app.mjs")), PRINTS);
  execFileSync(binary("bun"), ["build", "app.mjs", "--target=node", "--outdir=bun"], { cwd: root });
  const alone = folder(t);
  cpSync(join(root, "bun"), join(alone, "bun"), { recursive: true });
  assert.match(runs(join(root, "bun/app.js")), PRINTS);
});
