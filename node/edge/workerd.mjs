// For runtimes that cannot compile WebAssembly at run time: there it is imported as a module.

export * from "./face.mjs";
import { connector } from "./client.mjs";
import { instantiate } from "./component/leasehold.mjs";
import core from "./component/leasehold.core.wasm";
import core2 from "./component/leasehold.core2.wasm";
import core3 from "./component/leasehold.core3.wasm";

const modules = { "leasehold.core.wasm": core, "leasehold.core2.wasm": core2, "leasehold.core3.wasm": core3 };

export const connect = connector(() => () => instantiate((name) => modules[name], {}));
