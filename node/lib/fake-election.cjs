"use strict";

// Elections of the fake clients of testing.cjs: workers on a single shard, which is the lock of the election.

const { FakeShards } = require("./fake-shards.cjs");

class FakeElection extends FakeShards {
  #workers;

  constructor(process, name, settings) {
    super(process, name, { ...settings, count: 1 });
    this.#workers = process.world.workers;
  }

  get key() {
    return `${this.name}\0`;
  }

  get token() {
    return this.leases[0]?.token;
  }

  resourceOf() {
    return this.name;
  }

  agrees() {
    return true;
  }

  resign() {
    return this.stop();
  }

  /** After a loss the other candidates come first. */
  ended({ loss }) {
    const line = loss && this.#workers.get(this.key);
    if (line) line.push(...line.splice(line.indexOf(this), 1));
  }
}

module.exports = { FakeElection };
