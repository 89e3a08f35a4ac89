"use strict";

// What is made of locks: one lock of several, semaphores, and locks for readers and writers.

const { Lease } = require("./lease.cjs");
const { ALL, ANY, TRY_ALL, TRY_ANY, number, options } = require("./options.cjs");
const { shows } = require("./shown.cjs");
const { under } = require("./under.cjs");

/** A held permit of a semaphore. */
class Permit extends Lease {
  #index;

  constructor(native, index) {
    super(native);
    this.#index = index;
  }

  get index() {
    return this.#index;
  }

  toJSON() {
    return { ...super.toJSON(), index: this.#index };
  }
}

/** The lease of native code, with its number if it is a permit. */
const wrap = (native, index) => (index === undefined ? new Lease(native) : new Permit(native, index));

/** Calls the body with the lease that `acquire` gives for these options. */
async function used(what, given, body, acquire) {
  if (body === undefined && typeof given === "function") return used(what, undefined, given, acquire);
  if (typeof body !== "function") throw new TypeError(`${what} needs a function to call with the lease`);
  return under(await acquire(given), body);
}

class LockAny {
  #native;
  #names;

  constructor(native, names) {
    this.#native = native;
    this.#names = names;
  }

  get names() {
    return [...this.#names];
  }

  async acquire(given) {
    return this.#native.acquireComposed(this.#composition(), options(given, ANY), wrap, false);
  }

  async tryAcquire(given) {
    return this.#native.acquireComposed(this.#composition(), options(given, TRY_ANY), wrap, true);
  }

  using(given, body) {
    return used("using", given, body, (settings) => this.acquire(settings));
  }

  toJSON() {
    return { names: this.names };
  }

  #composition() {
    return { kind: "any", names: this.#names };
  }
}

class Semaphore {
  #native;
  #name;
  #permits;

  constructor(native, name, permits) {
    this.#native = native;
    this.#name = name;
    this.#permits = number("permits", permits);
  }

  get name() {
    return this.#name;
  }

  get permits() {
    return this.#permits;
  }

  async acquire(given) {
    return this.#native.acquireComposed(this.#composition(), options(given, ANY), wrap, false);
  }

  async tryAcquire(given) {
    return this.#native.acquireComposed(this.#composition(), options(given, TRY_ANY), wrap, true);
  }

  using(given, body) {
    return used("using", given, body, (settings) => this.acquire(settings));
  }

  toJSON() {
    return { name: this.#name, permits: this.#permits };
  }

  #composition() {
    return { kind: "permit", names: [this.#name], count: this.#permits };
  }
}

class RwLock {
  #native;
  #name;
  #readers;

  constructor(native, name, readers) {
    this.#native = native;
    this.#name = name;
    this.#readers = readers;
  }

  get name() {
    return this.#name;
  }

  async read(given) {
    return this.#acquire("read", options(given, ALL), false);
  }

  async write(given) {
    return this.#acquire("write", options(given, ALL), false);
  }

  async tryRead(given) {
    return this.#acquire("read", options(given, TRY_ALL), true);
  }

  async tryWrite(given) {
    return this.#acquire("write", options(given, TRY_ALL), true);
  }

  reading(given, body) {
    return used("reading", given, body, (settings) => this.read(settings));
  }

  writing(given, body) {
    return used("writing", given, body, (settings) => this.write(settings));
  }

  toJSON() {
    return { name: this.#name, readers: this.#readers };
  }

  async #acquire(kind, settings, tries) {
    const composition = { kind, names: [this.#name], count: this.#readers };
    return this.#native.acquireComposed(composition, settings, wrap, tries);
  }
}

shows(LockAny, Permit, RwLock, Semaphore);

module.exports = { LockAny, Permit, RwLock, Semaphore };
