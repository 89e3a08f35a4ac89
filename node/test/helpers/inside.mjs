// What the package keeps, for tests of what it leaves behind.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const loop = require(join(dirname(require.resolve("leasehold")), "lib", "loop.cjs"));

export const left = loop.left;
