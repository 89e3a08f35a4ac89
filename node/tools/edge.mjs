// Generated parts of `leasehold/edge`: edge.mjs TRANSPILED PACKAGE writes them into the assembled package.

import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const [transpiled, folder] = process.argv.slice(2);
/** Modules shared by both halves of the package, written for `require`. */
const SHARED = ["errors", "keyed", "lengths", "occurrence", "options", "reasons", "results", "shown", "under"];

const shared = join(folder, "edge", "shared");
await mkdir(shared, { recursive: true });
for (const name of SHARED) {
  const written = await readFile(join(folder, "lib", `${name}.cjs`), "utf8");
  const text = written.replace(/^const (\{.*\}) = require\("\.\/(\w+)\.cjs"\);$/gm, (line, names, of) =>
    SHARED.includes(of) ? `import ${of}Module from "./${of}.mjs";\nconst ${names} = ${of}Module;` : line,
  );
  if (text.includes("require(")) throw new Error(`lib/${name}.cjs asks for a module that is not shared, which only Node can answer`);
  const module = text.replace('"use strict";\n', "").replace(/^module\.exports = /m, "export default ");
  if (module.includes("module.exports")) throw new Error(`lib/${name}.cjs exports more than one object`);
  await writeFile(join(shared, `${name}.mjs`), module);
}

const component = join(folder, "edge", "component");
await mkdir(component, { recursive: true });
// Made by a machine for machines, so no compiler looks at its types.
const made = await readFile(join(transpiled, "leasehold.js"), "utf8");
await writeFile(join(component, "leasehold.mjs"), `// @ts-nocheck\n${made}`);
const packed = {};
for (const name of (await readdir(transpiled)).filter((name) => name.endsWith(".wasm")).sort()) {
  const bytes = await readFile(join(transpiled, name));
  await writeFile(join(component, name), bytes);
  packed[name] = gzipSync(bytes, { level: 9 }).toString("base64");
}
await writeFile(join(component, "packed.mjs"), `export default ${JSON.stringify(packed, null, 1)};\n`);
