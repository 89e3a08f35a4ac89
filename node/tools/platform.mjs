// Makes the package of one platform: the addon, the folder to make, and the platform, such as linux-x64-gnu, if it is not
// that of this machine.

import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL("../../", import.meta.url));
const LICENSES = ["LICENSE-APACHE", "LICENSE-MIT"];
const [addon, folder, platform = require("../lib/platform.cjs").platform()] = process.argv.slice(2);
const main = require("../package.json");
const name = `@leasehold/${platform}`;
if (!Object.hasOwn(main.optionalDependencies, name)) throw new Error(`the package names no ${name}`);
const [os, cpu, libc] = platform.split("-");
const { version, repository, homepage, license, engines } = main;
const written = {
  name,
  version,
  description: `The native code of leasehold for ${platform}`,
  repository,
  homepage,
  license,
  engines,
  os: [os],
  cpu: [cpu],
  ...(libc && { libc: [libc === "gnu" ? "glibc" : libc] }),
  main: "leasehold.node",
  // The last is made for a release.
  files: ["leasehold.node", ...LICENSES, "THIRD-PARTY.txt"],
  // Without it a new scoped package is private.
  publishConfig: { access: "public" },
};
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "package.json"), `${JSON.stringify(written, null, 2)}\n`);
writeFileSync(join(folder, "README.md"), `# ${name}\n\nThe native code of the package leasehold for this platform. Install that one.\n`);
copyFileSync(addon, join(folder, "leasehold.node"));
for (const text of LICENSES) copyFileSync(join(root, text), join(folder, text));
