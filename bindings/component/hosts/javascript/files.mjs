// The golden vectors, from their folder.

import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Texts by file name, in the order of their names. */
export async function vectorsOf(folder) {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".json")).sort();
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "utf8")])));
}
