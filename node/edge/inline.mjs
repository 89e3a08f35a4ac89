// The component inside a JavaScript module, so that bundlers need no support for WebAssembly.

import { instantiate } from "./component/leasehold.mjs";
import packed from "./component/packed.mjs";

let compiled;

/** Returns a factory of instances. Compiled once, when the first client is made. */
export async function load() {
  compiled ??= compile();
  try {
    const modules = await compiled;
    return () => instantiate((name) => modules.get(name), {});
  } catch (error) {
    compiled = undefined;
    throw error;
  }
}

async function compile() {
  const names = Object.keys(packed);
  const modules = await Promise.all(names.map(async (name) => WebAssembly.compile(await unpacked(packed[name]))));
  return new Map(names.map((name, at) => [name, modules[at]]));
}

/** Decodes compressed base64. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
