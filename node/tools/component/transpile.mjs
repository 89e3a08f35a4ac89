// A component as an ES module and plain WebAssembly: transpile.mjs COMPONENT FOLDER [INTERFACE...].
//
// It may import the named interfaces, such as `wasi:http/types`, which then have to be given to its `instantiate`.
// The tools are those of the folder from which this is run.

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [component, folder, ...interfaces] = process.argv.slice(2);
const tools = createRequire(join(process.cwd(), "package.json"));
const { transpileBytes } = await import(pathToFileURL(tools.resolve("@bytecodealliance/jco-transpile")));
const { minify } = tools("terser");

const name = basename(component, ".wasm");
const module = `${name}.js`;

const { files, imports } = await transpileBytes(await readFile(component), {
  name,
  instantiation: "sync",
  base64Cutoff: 0,
  nodejsCompat: false,
  tlaCompat: false,
  wasiShim: false,
  // An error of the WIT is told apart from one of the host by its `payload`.
  noComponentErrorWrapping: false,
});
const strange = imports.filter((name) => !interfaces.includes(name));
if (strange.length > 0) throw new Error(`the component must not import ${strange.join(", ")}`);

// Messages for people who mend the tool look at a variable of the environment in every call, which costs more than the call.
const { code } = await minify(new TextDecoder().decode(files[module]), {
  module: true,
  compress: { ecma: 2022, pure_funcs: ["_debugLog"] },
});
if (code.includes("process")) throw new Error("what was made of the component asks for `process`, which only Node has");
files[module] = code;

await rm(folder, { recursive: true, force: true });
await mkdir(join(folder, "interfaces"), { recursive: true });
await Promise.all(Object.entries(files).map(([name, bytes]) => writeFile(join(folder, name), bytes)));
