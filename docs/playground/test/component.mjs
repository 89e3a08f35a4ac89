// The component for tests in Node: LEASEHOLD_TRANSPILED names its folder.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { compiled } from "../../../bindings/component/hosts/javascript/load.mjs";

const folder = process.env.LEASEHOLD_TRANSPILED;
const { instantiate } = await import(pathToFileURL(join(folder, "leasehold.js")));
export const protocol = await compiled(instantiate, (name) => readFile(join(folder, name)));
