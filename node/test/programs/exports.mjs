// Imports and requires every entry of the package's exports. It is copied into the folder where the package is installed.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { exports } = require("leasehold/package.json");
/** What an entry needs beside this package, and is not there. */
const PEERS = { "./nestjs": "@nestjs/common", "./prometheus": "prom-client" };

for (const [entry, conditions] of Object.entries(exports)) {
  const name = `leasehold${entry.slice(1)}`;
  if (name.endsWith(".json")) continue;
  const peer = PEERS[entry];
  for (const load of [() => import(name), async () => conditions.require && require(name)]) {
    const failed = await load().then(() => false, (error) => error.message.includes(`'${peer}'`) || Promise.reject(error));
    if (failed !== (peer !== undefined)) throw new Error(`${name} loads without ${peer}`);
  }
  console.log(name);
}
