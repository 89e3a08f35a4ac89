"use strict";

// The machine of the protocol without I/O, and its like. Documented in ../protocol.d.ts and values/.

const native = require("./native.cjs");
const { told } = require("./told.cjs");

class Client {
  #native;

  constructor(key, made) {
    if (key !== KEY) throw new TypeError("a client is made by Client.create or Client.createWired");
    this.#native = made;
  }

  static create(config, seed, now) {
    return new Client(KEY, make("client", "create", config, seed, now));
  }

  static createWired(config, stores, seed, now) {
    return new Client(KEY, make("client", "create-wired", config, stores, seed, now));
  }

  acquire(lock, resource, options, fresh, now) {
    this.#call("acquire", lock, resource, options, fresh, now);
  }

  release(lock, now) {
    this.#call("release", lock, now);
  }

  finish(lock, runResult, now) {
    this.#call("finish", lock, runResult, now);
  }

  declareLost(lock, now) {
    this.#call("declare-lost", lock, now);
  }

  close(now) {
    this.#call("close", now);
  }

  handleResponse(id, response, now) {
    this.#call("handle-response", id, response, now);
  }

  handleTimeout(fresh, now) {
    this.#call("handle-timeout", fresh, now);
  }

  notified(resource, now) {
    this.#call("notified", resource, now);
  }

  subscribed(node, resource, now) {
    this.#call("subscribed", node, resource, now);
  }

  credentialsRenewed(node, now) {
    this.#call("credentials-renewed", node, now);
  }

  setCredentials(node, credentials, now) {
    this.#call("set-credentials", node, credentials, now);
  }

  nodeVotes(node, loss, now) {
    this.#call("node-votes", node, loss, now);
  }

  reseed(seed) {
    this.#call("reseed", seed);
  }

  pollOutput(now) {
    return this.#call("poll-output", now);
  }

  step(fresh, now, inputs = []) {
    return this.#call("step", fresh, now, inputs);
  }

  remainingNs(lock, now) {
    return this.#call("remaining-ns", lock, now);
  }

  holder(lock) {
    return this.#call("holder", lock) ?? null;
  }

  state(lock) {
    return this.#call("state", lock) ?? null;
  }

  stats() {
    return this.#call("stats");
  }

  isIdle() {
    return this.#call("is-idle");
  }

  #call(name, ...args) {
    return told(this.#native.call(name, args));
  }
}

class Guard {
  #native;

  constructor(highWater) {
    this.#native = make("guard", "create", highWater);
  }

  get highWater() {
    return told(this.#native.call("high-water", [])) ?? null;
  }

  claim(token) {
    told(this.#native.call("claim", [token]));
  }

  check(token, sequence) {
    const [name, args] = sequence === undefined ? ["check", [token]] : ["check-in-order", [token, sequence]];
    told(this.#native.call(name, args));
  }
}

class Reader {
  #native;

  constructor(maxReplyBytes) {
    this.#native = make("reader", "create", maxReplyBytes);
  }

  push(bytes) {
    told(this.#native.call("push", [bytes]));
  }

  take(replies) {
    return told(this.#native.call("take", [replies])) ?? null;
  }
}

const KEY = Symbol("leasehold.protocol");

function make(of, name, ...args) {
  return told(native.protocolMake(of, name, args));
}

function redis(name, ...args) {
  return told(native.protocolRedis(name, args));
}

function runs(name, ...args) {
  return told(native.protocolRuns(name, args));
}

module.exports = { Client, Guard, Reader, redis, runs };
