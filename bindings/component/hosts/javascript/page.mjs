// The golden vectors in a browser: what in-browser.mjs opens.

import { instantiate } from "/transpiled/leasehold.js";

import { compiled } from "./load.mjs";
import { playAll } from "./vectors.mjs";

const loaded = async (path, kind) => (await fetch(path))[kind]();

async function play() {
  const component = await compiled(instantiate, (name) => loaded(`/transpiled/${name}`, "arrayBuffer"));
  const vectors = new Map(await loaded("/vectors.json", "json"));
  return { ran: playAll({ component, wit: await loaded("/leasehold.wit", "text"), vectors }), in: navigator.userAgent };
}

const told = await play().catch((error) => ({ failed: String(error?.stack ?? error) }));
await fetch("/told", { method: "POST", body: JSON.stringify(told) });
