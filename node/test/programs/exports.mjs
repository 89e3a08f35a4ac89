// Imports and requires every entry of the package's exports. It is copied into the folder where the package is installed.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { exports } = require("leasehold/package.json");

for (const [entry, conditions] of Object.entries(exports)) {
  const name = `leasehold${entry.slice(1)}`;
  if (name.endsWith(".json")) continue;
  await import(name);
  if (conditions.require !== undefined) require(name);
  console.log(name);
}
