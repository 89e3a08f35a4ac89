// What a JavaScript program needs to run the transpiled component. It imports nothing, so there is nothing to give it.

/**
 * Compiles the component once, of which then as many instances can be made as are needed. `instantiate` is the export of the
 * transpiled module; `fetchBytes` loads the files beside it, by name.
 */
export async function compiled(instantiate, fetchBytes) {
  const names = ["leasehold.core.wasm", "leasehold.core2.wasm", "leasehold.core3.wasm"];
  const compile = async (name) => [name, await WebAssembly.compile(await fetchBytes(name))];
  const modules = new Map(await Promise.all(names.map(compile)));
  return () => instantiate((name) => modules.get(name), {}).client;
}
