// Generated parts of `leasehold/edge`: edge.mjs TRANSPILED PACKAGE writes them into the assembled package.

import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const [transpiled, folder] = process.argv.slice(2);
/** Modules shared by both halves of the package, written for `require`. */
const SHARED = ["errors", "lengths", "occurrence", "options", "shown", "under"];

const shared = join(folder, "edge", "shared");
await mkdir(shared, { recursive: true });
for (const name of SHARED) {
  const written = await readFile(join(folder, "lib", `${name}.cjs`), "utf8");
  const text = written.replace(/^const (\{.*\}) = require\("\.\/(\w+)\.cjs"\);$/gm, (line, names, of) =>
    SHARED.includes(of) ? `import ${of} from "./${of}.mjs";\nconst ${names} = ${of};` : line,
  );
  if (text.includes("require(")) throw new Error(`lib/${name}.cjs asks for a module that is not shared, which only Node can answer`);
  const module = `const module = { exports: {} };\n${text.replace('"use strict";\n', "")}\nexport default module.exports;\n`;
  await writeFile(join(shared, `${name}.mjs`), module);
}

const component = join(folder, "edge", "component");
await mkdir(component, { recursive: true });
await copyFile(join(transpiled, "leasehold.js"), join(component, "leasehold.mjs"));
const packed = {};
for (const name of (await readdir(transpiled)).filter((name) => name.endsWith(".wasm")).sort()) {
  const bytes = await readFile(join(transpiled, name));
  await writeFile(join(component, name), bytes);
  packed[name] = gzipSync(bytes, { level: 9 }).toString("base64");
}
await writeFile(join(component, "packed.mjs"), `export default ${JSON.stringify(packed, null, 1)};\n`);
