// The component, out of the page itself. What this imports is put there by build.mjs.

import { instantiate } from "./component/leasehold.mjs";
import packed from "./component/packed.mjs";

/** Answers what makes instances. */
export async function load() {
  const compile = async ([name, text]) => [name, await WebAssembly.compile(await unpacked(text))];
  const modules = new Map(await Promise.all(Object.entries(packed).map(compile)));
  return () => instantiate((name) => modules.get(name), {}).client;
}

/** What was compressed and written in base64. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
