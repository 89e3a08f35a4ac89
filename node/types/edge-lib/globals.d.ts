// A host that imports WebAssembly as a module.
declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
