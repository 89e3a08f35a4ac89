// Internal parts of `leasehold/edge`, for tests.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const root = dirname(createRequire(import.meta.url).resolve("leasehold"));

/** The folder of the modules. */
export const folder = join(root, "edge");

/** One of the modules. */
export const part = (name) => import(pathToFileURL(join(folder, `${name}.mjs`)));
