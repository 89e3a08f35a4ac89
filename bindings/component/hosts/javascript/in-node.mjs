// The golden vectors in Node: in-node.mjs TRANSPILED WIT VECTORS.

import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { vectorsOf } from "./files.mjs";
import { compiled } from "./load.mjs";
import { playAll } from "./vectors.mjs";

const [transpiled, wit, folder] = process.argv.slice(2);
const { instantiate } = await import(pathToFileURL(resolve(transpiled, "leasehold.js")));
const component = await compiled(instantiate, (name) => readFile(join(transpiled, name)));
const ran = playAll({ component, wit: await readFile(wit, "utf8"), vectors: await vectorsOf(folder) });
console.log(`In Node ${process.versions.node}, the component does what the core does:\n  ${ran.join("\n  ")}`);
