// The component out of a module of its own, so that no bundler has to know of WebAssembly.

import { instantiate } from "./component/leasehold.mjs";
import packed from "./component/packed.mjs";

let compiled;

/** Answers what makes instances. Compiled once, when the first client is made. */
export async function load() {
  compiled ??= compile();
  try {
    const modules = await compiled;
    return () => instantiate((name) => modules.get(name), {}).client;
  } catch (error) {
    compiled = undefined;
    throw error;
  }
}

async function compile() {
  const each = Object.entries(packed).map(async ([name, text]) => [name, await WebAssembly.compile(await unpacked(text))]);
  return new Map(await Promise.all(each));
}

/** What was compressed and written in base64. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
