"use strict";

// Compare-and-set: updates of single items that need no lock. Documented in cas.d.ts.

const { connecting, refuseFiles } = require("./lib/client.cjs");
const { run } = require("./lib/loop.cjs");
const native = require("./lib/native.cjs");
const { number, options, text } = require("./lib/options.cjs");
const { told } = require("./lib/told.cjs");

const TRIES = 10;

async function connect(...given) {
  const { urls, taken } = connecting(...given);
  if (urls !== undefined) text("store", given[0] ?? "");
  if (native.elder !== undefined) refuseFiles(urls);
  const { tries = TRIES } = options(taken, { tries: "number" });
  return new Items(await run(native.connectItems(urls?.[0])), number("tries", tries));
}

class Items {
  #native;
  #tries;

  constructor(native, tries) {
    this.#native = native;
    this.#tries = tries;
  }

  async read(name) {
    return item(await run(this.#begin(name, 1).step()));
  }

  async update(name, decide) {
    if (typeof decide !== "function") throw new TypeError("update needs a function that makes the new value");
    const update = this.#begin(name, this.#tries);
    for (;;) {
      const step = await run(update.step());
      if (step.isWritten) return item(step);
      const value = await decide(item(step)?.value ?? null);
      if (value === null || value === undefined) return null;
      if (!(value instanceof Uint8Array)) {
        throw new TypeError(`the new value of an item is a Uint8Array or Buffer, or null to leave it, not ${typeof value}`);
      }
      told(update.write(value));
    }
  }

  #begin(name, tries) {
    return told(this.#native.begin(text("name", name), tries));
  }
}

function item({ value, version }) {
  return value === undefined || value === null ? null : { value, version };
}

module.exports = { connect, Items };
