"use strict";

// Clients for tests of your own code: real ones, with a clock that the test moves and a store that belongs to it. Documented in testing.d.ts.

const { Items } = require("./cas.cjs");
const { Client } = require("./lib/client.cjs");
const { Connected } = require("./lib/handles.cjs");
const { clocks, reactor } = require("./lib/loop.cjs");
const native = require("./lib/native.cjs");
const { CONNECT, number, options, text } = require("./lib/options.cjs");
const { told } = require("./lib/told.cjs");

const SEED = 1;

function made(seed) {
  clocks.exist();
  return told(native.makeTestClock(seed));
}

/** The clock of native code. */
let nativeOf;
/** Another client of a clock. */
let clientOf;

class FakeClock {
  #native;
  /** They end with the clock, and not when nobody refers to them any more, which is at no certain time. */
  #clients = [];

  constructor(given) {
    const { seed = SEED } = options(given, { seed: "number" });
    this.#native = made(seed);
  }

  now() {
    return this.#native.now();
  }

  advance(ms) {
    this.#do(() => this.#native.advance(reactor, number("advance", ms)));
  }

  settle() {
    this.#do(() => this.#native.settle(reactor));
  }

  step() {
    return this.#do(() => this.#native.step(reactor));
  }

  storeDown() {
    this.#native.storeDown();
  }

  storeUp() {
    this.#do(() => this.#native.storeUp(reactor));
  }

  loseReply() {
    this.#native.loseReply();
  }

  late(ms) {
    told(this.#native.late(number("late", ms)));
  }

  /** What it has brought about goes on when the loop is idle. */
  #do(call) {
    try {
      return told(call());
    } finally {
      clocks.goOn();
    }
  }

  static {
    nativeOf = (clock) => clock.#native;
    clientOf = (clock, settings) => {
      const client = told(clock.#native.connect(settings));
      clock.#clients.push(client);
      return client;
    };
  }
}

function connect({ clock = new FakeClock(), owner = "fake", ...settings } = {}) {
  return new FakeClient(clock, clientOf(clock, options({ owner, ...settings }, CONNECT)));
}

class FakeClient extends Client {
  #clock;
  #client;

  constructor(clock, client) {
    super(new Connected(client));
    this.#clock = clock;
    this.#client = client;
  }

  get clock() {
    return this.#clock;
  }

  lose(name) {
    const lost = nativeOf(this.#clock).lose(reactor, this.#client, text("name", name));
    clocks.goOn();
    told(lost);
  }

  storeDown() {
    this.#clock.storeDown();
  }

  storeUp() {
    this.#clock.storeUp();
  }
}

function connectItems({ store = new FakeItemStore(), tries = 10 } = {}) {
  return new Items(itemsOf(store), number("tries", tries));
}

/** The items of a store, as `Items` uses those of native code. */
let itemsOf;

class FakeItemStore {
  #clock = made(SEED);
  #next = new Map();

  write(name, given) {
    const { value, version } = told(this.#clock.writeItem(text("name", name), given));
    return { value, version };
  }

  writeFirst(name, values) {
    this.#next.set(text("name", name), [...(this.#next.get(name) ?? []), ...values]);
  }

  down() {
    this.#clock.storeDown();
  }

  up() {
    this.#clock.storeUp(reactor);
  }

  #begin(name, tries) {
    const update = told(this.#clock.items().begin(name, tries));
    const write = (value) => {
      told(update.write(value));
      // Another client is faster.
      const first = this.#next.get(name)?.shift();
      if (first !== undefined) this.write(name, first);
    };
    return { step: () => update.step(), write };
  }

  static {
    itemsOf = (store) => ({ begin: (name, tries) => store.#begin(name, tries) });
  }
}

module.exports = { FakeClock, FakeItemStore, connect, connectItems };
