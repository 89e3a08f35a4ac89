// The golden vectors in Chromium: in-browser.mjs TRANSPILED WIT VECTORS.

import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { told } from "../../../../node/test/helpers/chromium.mjs";
import { vectorsOf } from "./files.mjs";

const [transpiled, wit, folder] = process.argv.slice(2);
const vectors = JSON.stringify([...(await vectorsOf(folder))]);

const { failed, ran, in: browser } = await told(async (path) => {
  if (path === "vectors.json") return vectors;
  if (path === "leasehold.wit") return readFile(wit);
  if (path === "page.html") return readFile(new URL(path, import.meta.url));
  const [place, name] = path.split("/");
  if (place === "transpiled") return readFile(join(transpiled, name));
  return place === "host" ? readFile(new URL(name, import.meta.url)) : null;
});
if (failed !== undefined) {
  console.error(failed);
  process.exit(1);
}
const [, version] = /Chrome\/([0-9.]+)/.exec(browser) ?? [undefined, "?"];
console.log(`In Chromium ${version}, the component does what the core does:\n  ${ran.join("\n  ")}`);
