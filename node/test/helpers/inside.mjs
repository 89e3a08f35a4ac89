// Internal state of the package, for tests of leaks.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const loop = require(join(dirname(require.resolve("leasehold")), "lib", "loop.cjs"));

export const left = loop.left;
