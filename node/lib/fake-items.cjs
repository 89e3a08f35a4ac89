"use strict";

// Items of compare-and-set of testing.cjs, in a store that interferes when told to.

const errors = require("./errors.cjs");
const { text } = require("./options.cjs");

const MOST_BYTES = 380 << 10;

class FakeItemStore {
  #items = new Map();
  #next = new Map();
  isUp = true;

  get(name) {
    return this.#items.get(name);
  }

  write(name, value) {
    const item = { value: Buffer.from(value), version: (this.#items.get(text("name", name))?.version ?? 0) + 1 };
    this.#items.set(name, item);
    return item;
  }

  writeFirst(name, values) {
    this.#next.set(text("name", name), [...(this.#next.get(name) ?? []), ...values]);
  }

  /** The write of another client, which is faster than the next one. */
  interfere(name) {
    const value = this.#next.get(name)?.shift();
    if (value !== undefined) this.write(name, value);
  }

  down() {
    this.isUp = false;
  }

  up() {
    this.isUp = true;
  }
}

/** Items as `Items` uses its native ones. */
class FakeItems {
  #store;

  constructor(store) {
    this.#store = store;
  }

  begin(name, tries) {
    if (/^$|[\0-\x1f]/.test(name)) {
      throw new errors.ConfigError(`"${name}" cannot be the name of an item: it is empty, or has control characters`, { resource: name });
    }
    return new Update(this.#store, name, tries);
  }
}

/** One update of one item. */
class Update {
  #store;
  #name;
  #most;
  #tries = 0;
  #seen;
  #value;

  constructor(store, name, most) {
    this.#store = store;
    this.#name = name;
    this.#most = most;
  }

  step() {
    return { begin: async () => this.#step() };
  }

  #step() {
    const [store, name] = [this.#store, this.#name];
    if (!store.isUp) throw this.#failed("StoreUnavailableError", "the test has taken the store down");
    if (this.#value !== undefined) {
      this.#tries += 1;
      store.interfere(name);
      if (store.get(name) === this.#seen) return { isWritten: true, ...store.write(name, this.#value) };
      if (this.#tries >= this.#most) {
        throw this.#failed("TooManyConflictsError", `tried ${this.#tries} times, and others were faster each time`);
      }
    }
    this.#seen = store.get(name);
    return { isWritten: false, ...this.#seen };
  }

  write(value) {
    if (value.length > MOST_BYTES) {
      throw this.#failed("ConfigError", `${value.length} bytes are too many: a value has at most ${MOST_BYTES}`);
    }
    this.#value = value;
  }

  #failed(kind, message) {
    const temporary = kind !== "ConfigError";
    const error = new errors[kind](`"${this.#name}": ${message}`, { resource: this.#name, temporary });
    return Object.assign(error, { tries: this.#tries, fate: "not_written" });
  }
}

module.exports = { FakeItemStore, FakeItems };
